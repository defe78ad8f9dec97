"""Which release of ROCm a prefix is of, by the files that state it and by the numbers in the names of its libraries."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from packaging.version import Version

from rocwheel.artifacts.model.sdk_manifest import SdkManifest
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.messages import first_of, quoted
from rocwheel.core.reading import read_regular

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["Sign", "check_one_release", "library_signs", "stated_signs"]

_LIBRARY = re.compile(r"lib(?:64)?/(lib[^/]+)\.so\.[0-9.]*?\.([1-9][0-9]{4,5})")
"""AMD ends the name of each library with the release: ``libamdhip64.so.6.4.60400`` is of ROCm 6.4.0."""
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+ROCM_VERSION_(MAJOR|MINOR|PATCH)[ \t]+([0-9]+)", re.MULTILINE)
_MOST = 20
"""No release has had a major, minor or patch number this high; other numbers in names, such as dates, have."""


class Sign(NamedTuple):
    """A file that tells which release it is of."""

    path: str
    release: str
    """As in ``6.4.0``, without a build number."""
    library: str = ""
    """The name without version, for a library."""


def stated_signs(root: Path, patterns: Iterable[str]) -> list[Sign]:
    """Return what the files that match ``patterns`` say, in the order of the patterns; each has a version in it.

    Such files are ``.info/version``, ``rocm_version.h`` and ``therock_manifest.json``. Raises `InputError` for one that
    can't be read, or that has something else where the version should be.
    """
    paths = dict.fromkeys(path for pattern in patterns for path in sorted(root.glob(pattern)))
    stated = [(str(path.relative_to(root)), _stated(path)) for path in paths]
    return [Sign(path, release) for path, release in stated if release]


def library_signs(paths: Iterable[str]) -> list[Sign]:
    """Return what the names of libraries say; those that say nothing are left out."""
    found = ((path, _LIBRARY.fullmatch(path)) for path in paths)
    signs = (Sign(path, _decoded(int(match[2])), match[1]) for path, match in found if match)
    return [sign for sign in signs if sign.release]


def check_one_release(prefix: Path, stated: Sequence[Sign], libraries: Sequence[Sign]) -> None:
    """Raise `InputError` for a prefix with files of more than one release.

    A number behind the second dot may differ, as packagers rebuild some libraries for it alone, but not between two
    files of one library.
    """
    signs = [*stated, *libraries]
    releases: defaultdict[str, list[Sign]] = defaultdict(list)
    for sign in signs:
        releases[sign.release].append(sign)
    if len({_series(release) for release in releases}) < 2 and not _has_doubles(libraries):
        return
    found = "; ".join(
        f"{release}: {first_of([sign.path for sign in releases[release]], 2)}" for release in sorted(releases, key=_key)
    )
    remedy = "Remove what is left of the others, or install one release into a folder of its own."
    raise InputError(prefix, f"mixes releases of ROCm ({found})", expected="files of one release", remedy=remedy)


def _has_doubles(libraries: Iterable[Sign]) -> bool:
    """Return whether some library is there twice, of different releases."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for sign in libraries:
        found[sign.library].add(sign.release)
    return any(len(releases) > 1 for releases in found.values())


def _stated(path: Path) -> str:
    try:
        data = read_regular(path)
    except OSError as e:
        raise read_error(path, e) from e
    if path.suffix == ".json":
        return _checked(path, _plain(SdkManifest.parse(data, str(path)).rocm_version))
    text = data.decode("utf-8", "replace")
    if path.suffix == ".h":
        numbers = dict(_DEFINE.findall(text))
        release = ".".join(numbers[name] for name in ("MAJOR", "MINOR", "PATCH")) if len(numbers) == 3 else ""
        return _checked(path, release)
    words = text.split()
    return _checked(path, _plain(words[0]) if words else "")


def _checked(path: Path, release: str) -> str:
    """Return the release; raise `InputError` for one that is no version, none for a file that says nothing."""
    if not release:
        return release
    try:
        Version(release)
    except ValueError as e:
        remedy = "Correct the file, or remove it and give the version to `rocwheel build --version`."
        raise InputError(path, f"says {quoted(release)}", expected="a version such as 6.4.0", remedy=remedy) from e
    return release


def _plain(text: str) -> str:
    """Return a version without its build number: ``6.2.0`` for ``6.2.0-66``."""
    return text.partition("-")[0]


def _decoded(number: int) -> str:
    parts = (number // 10000, number // 100 % 100, number % 100)
    return ".".join(map(str, parts)) if all(part < _MOST for part in parts) else ""


def _series(release: str) -> tuple[int, ...] | str:
    try:
        return Version(release).release[:2]
    except ValueError:
        return release


def _key(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release))
