"""Names of wheels, sdists and ``.dist-info`` folders, with the label of a variant, if there is one.

Wheels with faulty names have to be reported, so nothing is refused here that has the parts of a name. Where only valid
names are of use, ``packaging.utils.parse_wheel_filename`` reads them.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import (
    canonicalize_name,
    canonicalize_version,
    is_normalized_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.wheels.tags import PlatformTag, parse_platforms
from rocwheel.wheels.variants import load_draft

if TYPE_CHECKING:
    from packaging.metadata import RawMetadata


def normalized_file_part(distribution: str) -> str:
    """Return a distribution name as file names spell it: lower case, runs of ``-_.`` become one ``_``."""
    return canonicalize_name(distribution).replace("-", "_")


WHEEL_SUFFIX = ".whl"
SDIST_SUFFIX = ".tar.gz"
DISTRIBUTION_SUFFIXES = (WHEEL_SUFFIX, SDIST_SUFFIX)
"""How the names of distributions end."""

_LABEL_PARTS = 5
"""Those of a name without build number and label."""
_PYTHON = re.compile(r"[a-z]+\d\w*(\.\w+)*", re.ASCII | re.IGNORECASE)


def split_label(file_name: str) -> tuple[str, str]:
    """Return the file name of a wheel without its variant label, and the label; empty for none.

    A build number begins with a digit, and the tag of a Python can't: that tells a name with a build number from one
    with a label. A name with other parts, or whose last part can't be a label, is returned as it is: readers of plain
    names refuse it.
    """
    stem = file_name.removesuffix(WHEEL_SUFFIX)
    parts = stem.split("-")
    has_build = len(parts) > _LABEL_PARTS and parts[2][:1].isdecimal()
    is_labeled = len(parts) == _LABEL_PARTS + has_build + 1 and _PYTHON.fullmatch(parts[2 + has_build])
    if not is_labeled or not load_draft().grammar.has("label", parts[-1]):
        return file_name, ""
    return f"{'-'.join(parts[:-1])}{file_name[len(stem) :]}", parts[-1]


def without_label(file_name: str) -> str:
    """Return the file name of a wheel without its variant label, as readers of plain names take it."""
    return split_label(file_name)[0]


def with_label(file_name: str, label: str) -> str:
    """Return the plain file name of a wheel with a variant label; an empty one changes nothing."""
    return f"{file_name.removesuffix(WHEEL_SUFFIX)}-{label}{WHEEL_SUFFIX}" if label else file_name


_PARTS = (5, 6)
"""Without and with a build number."""


class WheelFileName(msgspec.Struct, frozen=True):
    """The parts of a wheel's file name as they are spelled; each of the last three may be several, joined by dots."""

    stem: str
    """Distribution and version, and the build number if there is one."""
    python: str
    abi: str
    platform: str
    label: str = ""
    """The label of a wheel variant (:pep:`825`, a draft); empty for none."""

    @property
    def text(self) -> str:
        """The whole file name."""
        return with_label(f"{self.stem}-{self.python}-{self.abi}-{self.platform}{WHEEL_SUFFIX}", self.label)

    @property
    def tags(self) -> tuple[str, str, str]:
        """The tags for Python, ABI and platform."""
        return self.python, self.abi, self.platform


def is_wheel_file_name(text: str) -> bool:
    """Return whether a file name has the five parts of a wheel's, or six with a build number; a label may follow."""
    return len(split_label(text)[0].removesuffix(WHEEL_SUFFIX).split("-")) in _PARTS


def split_wheel_file_name(text: str) -> WheelFileName:
    """Return the parts of a wheel's file name; raise `ValueError` for a name of too few parts."""
    plain, label = split_label(text)
    stem, python, abi, platform = plain.removesuffix(WHEEL_SUFFIX).rsplit("-", 3)
    return WheelFileName(stem, python, abi, platform, label)


def wheel_platforms(file_name: str) -> tuple[PlatformTag, ...]:
    """Return the platform tags in a wheel's file name."""
    return parse_platforms(split_wheel_file_name(file_name).platform)


def name_and_version(text: str) -> tuple[str, str]:
    """Return the distribution and version, as spelled, with which the name of a wheel or ``.dist-info`` folder begins.

    The version is empty in a name without one.
    """
    distribution, _, rest = text.removesuffix(".dist-info").partition("-")
    return distribution, rest.partition("-")[0]


_TAG = re.compile(r"\w+-\w+-\w+", re.ASCII)


class FileName(msgspec.Struct, frozen=True):
    """What the name of a distribution says."""

    project: str
    """Normalized."""
    version: Version
    identity: str
    """As that of an `IndexEntry`."""
    label: str = ""
    """Of a variant wheel."""


def is_distribution_name(name: str) -> bool:
    """Return whether a wheel or sdist may be called so."""
    try:
        return bool(parse_path(Path(name)))
    except InputError:
        return False


def parse_file_name(name: str) -> FileName:
    """Return what the name of a wheel or sdist says; raise `InputError` for another name, and for a path."""
    if "/" in name:
        raise _bad_name(Path(name))
    return parse_path(Path(name))


def parse_path(path: Path) -> FileName:
    """Return what the name of a file says; raise `InputError` about the path for another name."""
    plain, label = split_label(path.name)
    try:
        if path.name.endswith(WHEEL_SUFFIX):
            project, version, build, tags = parse_wheel_filename(plain)
            parts = (*map(str, build), *sorted(map(str, tags)), *filter(None, (label,)))
            identity = " ".join([canonicalize_version(version), *parts])
        else:
            project, version = parse_sdist_filename(path.name)
            identity = f"{canonicalize_version(version)} sdist"
            tags = frozenset()
    except ValueError as e:
        raise _bad_name(path) from e
    if not is_normalized_name(project) or not all(_TAG.fullmatch(str(tag)) for tag in tags):
        raise _bad_name(path)
    return FileName(project, version, identity, label)


def _bad_name(path: Path) -> InputError:
    expected = "NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl or NAME-VERSION.tar.gz"
    return InputError(path, "not the name of a distribution", expected=expected, remedy="Rename it, or remove it.")


def check_identity(path: Path | str, metadata: RawMetadata, project: str, version: Version) -> None:
    """Raise `InputError` when metadata names another project, or another version, than the file name does.

    ``project`` is the normalized name in the file name of ``path``. Installers refuse such a file.
    """
    if canonicalize_name(metadata.get("name", "")) != project:
        found = f"its metadata names the project {quoted(metadata.get('name', ''))}"
        raise InputError(path, found, expected=f"{project!r} as in the file name")
    stated = None
    with suppress(ValueError):
        stated = Version(metadata.get("version", ""))
    if stated != version:
        found = f"its metadata gives the version {quoted(metadata.get('version', ''))}"
        raise InputError(path, found, expected=f"{str(version)!r} as in the file name")
