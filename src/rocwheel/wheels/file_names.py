"""Parses the names of wheels, sdists, and ``.dist-info`` folders, including variant labels.

Commands must report wheels with invalid names, so this module accepts every name that has the right number of parts. To
accept only valid names, use ``packaging.utils.parse_wheel_filename``.
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
    """Return a distribution name as used in file names: in lowercase, with each run of ``-_.`` replaced with ``_``."""
    return canonicalize_name(distribution).replace("-", "_")


WHEEL_SUFFIX = ".whl"
SDIST_SUFFIX = ".tar.gz"
DISTRIBUTION_SUFFIXES = (WHEEL_SUFFIX, SDIST_SUFFIX)
"""The suffixes of distribution file names."""

_LABEL_PARTS = 5
"""The number of parts without a build number and a label."""
_PYTHON = re.compile(r"[a-z]+\d\w*(\.\w+)*", re.ASCII | re.IGNORECASE)


def split_label(file_name: str) -> tuple[str, str]:
    """Return a wheel file name without its variant label, and the label, or an empty string if there is no label.

    A build number begins with a digit, but a Python tag can't. This rule distinguishes a name with a build number from
    a name with a label. Returns any other name unchanged, even if its last part can't be a label. Parsers of names
    without labels reject such a name.
    """
    stem = file_name.removesuffix(WHEEL_SUFFIX)
    parts = stem.split("-")
    has_build = len(parts) > _LABEL_PARTS and parts[2][:1].isdecimal()
    is_labeled = len(parts) == _LABEL_PARTS + has_build + 1 and _PYTHON.fullmatch(parts[2 + has_build])
    if not is_labeled or not load_draft().grammar.has("label", parts[-1]):
        return file_name, ""
    return f"{'-'.join(parts[:-1])}{file_name[len(stem) :]}", parts[-1]


def without_label(file_name: str) -> str:
    """Return a wheel file name without its variant label, as required by parsers that don't support labels."""
    return split_label(file_name)[0]


def with_label(file_name: str, label: str) -> str:
    """Return a wheel file name with a variant label added; an empty label changes nothing."""
    return f"{file_name.removesuffix(WHEEL_SUFFIX)}-{label}{WHEEL_SUFFIX}" if label else file_name


_PARTS = (5, 6)
"""The number of parts, first without and then with a build number."""


class WheelFileName(msgspec.Struct, frozen=True):
    """The parts of a wheel file name, unchanged. Each of the last three parts may be several tags, joined by dots."""

    stem: str
    """The distribution, the version, and the build number, if any."""
    python: str
    abi: str
    platform: str
    label: str = ""
    """The label of a wheel variant (:pep:`825`, a draft), or an empty string if there is no label."""

    @property
    def text(self) -> str:
        """The complete file name."""
        return with_label(f"{self.stem}-{self.python}-{self.abi}-{self.platform}{WHEEL_SUFFIX}", self.label)

    @property
    def tags(self) -> tuple[str, str, str]:
        """The tags for Python, ABI, and platform."""
        return self.python, self.abi, self.platform


def is_wheel_file_name(text: str) -> bool:
    """Return whether a file name has the five or six parts of a wheel file name, optionally followed by a label."""
    return len(split_label(text)[0].removesuffix(WHEEL_SUFFIX).split("-")) in _PARTS


def split_wheel_file_name(text: str) -> WheelFileName:
    """Return the parts of a wheel file name. Raises `ValueError` if there are too few parts."""
    plain, label = split_label(text)
    stem, python, abi, platform = plain.removesuffix(WHEEL_SUFFIX).rsplit("-", 3)
    return WheelFileName(stem, python, abi, platform, label)


def wheel_platforms(file_name: str) -> tuple[PlatformTag, ...]:
    """Return the platform tags in a wheel's file name."""
    return parse_platforms(split_wheel_file_name(file_name).platform)


def name_and_version(text: str) -> tuple[str, str]:
    """Return the distribution and version, unchanged, from the beginning of a wheel or ``.dist-info`` name.

    The version is empty if the name has no version.
    """
    distribution, _, rest = text.removesuffix(".dist-info").partition("-")
    return distribution, rest.partition("-")[0]


_TAG = re.compile(r"\w+-\w+-\w+", re.ASCII)


class FileName(msgspec.Struct, frozen=True):
    """Information from a distribution's file name."""

    project: str
    """The normalized project name."""
    version: Version
    identity: str
    """The identity, which has the same value as in `IndexEntry`."""
    label: str = ""
    """The label of a wheel variant, or an empty string."""


def is_distribution_name(name: str) -> bool:
    """Return whether a name is valid for a wheel or sdist."""
    try:
        return bool(parse_path(Path(name)))
    except InputError:
        return False


def parse_file_name(name: str) -> FileName:
    """Parse the file name of a wheel or sdist. Raises `InputError` for any other name, and for a path."""
    if "/" in name:
        raise _bad_name(Path(name))
    return parse_path(Path(name))


def parse_path(path: Path) -> FileName:
    """Parse the file name in a path. Raises `InputError` for the path if the name isn't valid."""
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
    return InputError(
        path, "isn't a valid wheel or sdist file name", expected=expected, remedy="Rename or remove the file."
    )


def check_identity(path: Path | str, metadata: RawMetadata, project: str, version: Version) -> None:
    """Raise `InputError` if the project or the version in the metadata differs from the file name.

    ``project`` is the normalized name from the file name of ``path``. Installers reject such a file.
    """
    if canonicalize_name(metadata.get("name", "")) != project:
        found = f"its metadata has the project name {quoted(metadata.get('name', ''))}"
        raise InputError(path, found, expected=f"{project!r}, as in the file name")
    stated = None
    with suppress(ValueError):
        stated = Version(metadata.get("version", ""))
    if stated != version:
        found = f"its metadata has the version {quoted(metadata.get('version', ''))}"
        raise InputError(path, found, expected=f"{str(version)!r}, as in the file name")
