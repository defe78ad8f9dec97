"""Parses the entries of RPATH and RUNPATH (``ld.so(8)``), including their tokens, and checks them with rules.

In each folder, glibc's loader first searches ``glibc-hwcaps/LEVEL`` for the processor's levels, the highest level
first. Among ROCm's host architectures, only x86-64 has such levels.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.messages import first_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path


CpuLevel = Literal["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]
"""The levels of the x86-64 psABI. Every processor supports the first level."""

_FOLDER = "glibc-hwcaps"


def hwcaps_folders(level: CpuLevel) -> tuple[str, ...]:
    """Return the subfolders that the loader searches on a processor of ``level``, in search order."""
    levels = get_args(CpuLevel)
    return tuple(f"{_FOLDER}/{name}" for name in reversed(levels[1 : levels.index(level) + 1]))


def has_level(folder: str) -> bool:
    """Return whether a folder contains libraries for only some processors. Run paths contain its parent folder."""
    return f"/{_FOLDER}/" in f"/{folder}/"


def searched_folders(folders: Iterable[str], level: CpuLevel) -> tuple[str, ...]:
    """Return the folders that a run path needs for a library in ``folders``.

    These are the folders for all processors. If there are no such folders, these are the parents of the subfolders that
    the loader searches on a processor of ``level``.
    """
    found = tuple(dict.fromkeys(folders))
    plain = tuple(folder for folder in found if not has_level(folder))
    above = ((f"/{folder}".removesuffix(f"/{inner}"), folder) for inner in hwcaps_folders(level) for folder in found)
    return plain or tuple(dict.fromkeys(top[1:] for top, folder in above if top != f"/{folder}"))


_WORKING_FOLDER = "/the-working-folder"
"""A placeholder for the working directory of the process, where files are found only by accident."""

_ORIGIN = re.compile(r"\$(?:ORIGIN\b|\{ORIGIN\})")
_ORIGIN_FIRST = re.compile(r"\$(?:ORIGIN|\{ORIGIN\})(?=/|$)")
_BACK = re.compile(r"(?:^|/)(?!\.{1,2}/|\$)[^/]+/+(?:\./+)*\.\.(?:/|$)")
_LOST_ORIGIN = re.compile(r"(/\.\.|RIGIN)(/|$)")
_BUILD_FOLDER = re.compile(
    r"(^|/)(_solib_[^/]*|[^/]*\.runfiles|external|bazel-[^/]+|execroot|sandbox|CMakeFiles|site-packages)(/|$)"
    r"|^/(home|root|tmp|build|builds|workspace|usr/src|var/lib|__w|github)(/|$)"
)
_PYTHON_BUILD = re.compile(r"(^|/)build/(lib|temp)\.[^/]+(/|$)")
_DEAD = re.compile(
    r"(^|/)(_solib_[^/]*|[^/]*\.runfiles|bazel-[^/]+|CMakeFiles)(/|$)"
    r"|^/(.*/)?(execroot|\.?bazel/(.*/)?sandbox)(/|$)"
    r"|^/(tmp|build|builds|usr/src|var/lib/jenkins|__w|github|opt/_internal)(/|$)"
)
_WRITABLE = re.compile(r"^/+(tmp|var/tmp|dev/shm|run/shm|run/lock|var/lock)(/|$)")
_DEAD_IN_PACKAGE = re.compile(r"(^|/)(execroot|sandbox|external)(/|$)")
"""Folder names from Bazel that packages may also use.

They are recognized only inside a package and outside site-packages.
"""
_NO_PYTHON = re.compile(r"^(\.\./)+(lib(64)?/)?python3?/site-packages(/|$)")
"""Site-packages without a minor Python version, which no environment has. ``..`` may already point to ``lib``."""
_ONE_PYTHON = re.compile(r"^(\.\./)+(lib(64)?/)?(python|pypy)3\.[0-9]+t?/site-packages(/|$)")


def split_run_path(text: str | None) -> tuple[str, ...]:
    """Return the entries in a run path. An empty entry means the working directory, as in the loader."""
    return tuple(text.split(":")) if text else ()


def is_origin_relative(entry: str) -> bool:
    """Return whether an entry begins with ``$ORIGIN`` as a complete path component."""
    return _ORIGIN_FIRST.match(entry) is not None


def is_relative(entry: str) -> bool:
    """Return whether an entry depends on the working directory, for example, because of a misquoted ``$ORIGIN``."""
    return not entry.startswith("/") and not is_origin_relative(entry) and not lost_origin(entry)


def goes_back(entry: str) -> bool:
    """Return whether an entry has ``..`` after a folder name.

    The kernel follows the entry only if the folder exists.
    """
    return _BACK.search(entry) is not None


def is_build_folder(entry: str) -> bool:
    """Return whether an entry points to a folder that exists only during builds, judging by its name."""
    return _BUILD_FOLDER.search(entry.replace("$ORIGIN/", "").replace("${ORIGIN}/", "")) is not None


def is_writable_by_all(entry: str) -> bool:
    """Return whether every user of a machine can create an entry's folder and put a library into it."""
    return _WRITABLE.match(posixpath.normpath(entry)) is not None


def is_python_build_folder(folder: str) -> bool:
    """Return whether a folder, relative to site-packages, is a setuptools folder: ``build/lib.linux-x86_64-...``."""
    return _PYTHON_BUILD.search(folder) is not None


def lost_origin(entry: str) -> bool:
    """Return whether an entry seems to have lost its ``$ORIGIN`` to a shell or make."""
    return _LOST_ORIGIN.match(entry) is not None


def leads_nowhere(entry: str, folder: str) -> bool:
    """Return whether an entry in a file in ``folder`` can't point to a library on any user's machine.

    This applies to entries for folders that exist only during builds or in no environment. It also applies to entries
    for the working directory, and to entries that lost their ``$ORIGIN``. This test is narrower than `is_build_folder`,
    which uses names that users' folders may also have (``/opt/site-packages``, ``/home/me/rocm/lib``,
    ``/workspace/rocm/lib``, or a package called ``sandbox``).
    """
    place = resolve_entry(entry, folder)
    if place is None:
        return not entry.startswith("/") or lost_origin(entry) or _DEAD.search(entry) is not None
    if _NO_PYTHON.search(place):
        return True
    below = place if place.startswith("..") else place.partition("/")[2]
    return _DEAD.search(place) is not None or _DEAD_IN_PACKAGE.search(below) is not None


def names_one_python(place: str) -> bool:
    """Return whether a folder, relative to site-packages, is in the site-packages folder of one Python version."""
    return _ONE_PYTHON.search(place) is not None


def redundant_steps(entry: str, folder: str) -> list[str]:
    """Return the folders that an entry in a file in ``folder`` enters and leaves again with ``..``.

    The kernel follows such an entry only if these folders exist. All folders are relative to site-packages. The result
    is empty for an entry that doesn't start with ``$ORIGIN``.
    """
    match = _ORIGIN_FIRST.match(entry)
    found, place, entered = [], folder, 0
    for part in entry[match.end() :].split("/") if match else ():
        if part == ".." and entered:
            found.append(place)
        if part not in {"", "."}:
            entered = max(0, entered - 1) if part == ".." else entered + 1
            place = posixpath.normpath(posixpath.join(place, part))
    return found


def is_host_folder(entry: str) -> bool:
    """Return whether an entry is an absolute path that a host may have, such as ``/opt/rocm/lib``."""
    return entry.startswith("/") and not is_build_folder(entry) and not lost_origin(entry)


def expand_entry(entry: str, origin: str) -> str:
    """Return the path that an entry in a file in ``origin`` represents. The file system resolves ``..``."""
    expanded = _ORIGIN.sub(lambda _: origin, entry)
    return expanded if expanded.startswith("/") else posixpath.join(_WORKING_FOLDER, expanded)


def resolve_entry(entry: str, folder: str) -> str | None:
    """Return the folder of an entry in a file in ``folder``, or `None` if the entry doesn't start with ``$ORIGIN``.

    Both folders are relative to site-packages. An empty string means site-packages itself.
    """
    match = _ORIGIN_FIRST.match(entry)
    if match is None:
        return None
    place = posixpath.normpath(posixpath.join(folder, entry[match.end() :].lstrip("/")))
    return "" if place == "." else place


def folders_beyond(release: Collection[str], run_path: str | None, folder: str) -> list[str]:
    """Return the distinct folders outside a release that the run path of a file in ``folder`` points to.

    ``release`` contains top-level folders in site-packages. An RPATH must not point outside of these folders, because
    ``LD_LIBRARY_PATH`` can't override the RPATH and libraries from other folders inherit it. Build folders belong to no
    package.
    """
    found = (resolve_entry(entry, folder) for entry in split_run_path(run_path))
    beyond = (place for place in found if place and place.partition("/")[0] not in release)
    return list(dict.fromkeys(place for place in beyond if not is_python_build_folder(place)))


class EntryRule(msgspec.Struct, frozen=True):
    """A rule: its name in the audit, a test for entries that violate it, and a description."""

    name: str
    is_broken_by: Callable[[str], bool]
    words: str
    is_error: bool = True
    """Whether such an entry is always wrong, rather than valid on some machines."""

    def describe(self, entries: list[str]) -> str:
        """Return a description of the entries that violate the rule."""
        return self.words.format(first_of(list(map(repr, entries))))


RELATIVE = EntryRule("run-path-relative", is_relative, "searches {} relative to the working directory")
EATEN_ORIGIN = EntryRule("run-path-eaten-origin", lost_origin, "has {}: a shell or make removed $ORIGIN")
BUILD_FOLDER = EntryRule("run-path-build-folder", is_build_folder, "searches {} from the build machine")
HOST_FOLDER = EntryRule("run-path-absolute", is_host_folder, "searches {} on the host", is_error=False)
ENTRY_RULES = (RELATIVE, EATEN_ORIGIN, BUILD_FOLDER, HOST_FOLDER)
_CONTROL = re.compile(r"[\0-\x1f\x7f]")
_QUOTING = (
    "Pass $ORIGIN unchanged, in single quotes. 'rocwheel runpath for --tool TOOL' prints the text for a build tool."
)


def entry_problems(source: Path | str, entries: Sequence[str], *, remedy: str = "") -> tuple[InputError, ...]:
    """Return an error about ``source`` for each violation of a rule that applies regardless of the file's location.

    Control characters are also an error, because folder names on users' machines don't contain them.
    """
    expected = "$ORIGIN, $ORIGIN/FOLDER, or an absolute path on users' machines"
    advice = f"{_QUOTING} {remedy}".rstrip()
    control = [repr(entry) for entry in entries if _CONTROL.search(entry)]
    found = [f"has control characters in {first_of(control)}"] if control else []
    found += _broken_rules(entries, is_error=True)
    return tuple(InputError(source, text, expected=expected, remedy=advice) for text in found)


def doubtful_entries(entries: Sequence[str]) -> tuple[str, ...]:
    """Return descriptions of the entries that are valid on only some machines."""
    return _broken_rules(entries, is_error=False)


def _broken_rules(entries: Sequence[str], *, is_error: bool) -> tuple[str, ...]:
    rules = [rule for rule in ENTRY_RULES if rule.is_error is is_error]
    broken = [(rule, list(filter(rule.is_broken_by, entries))) for rule in rules]
    return tuple(rule.describe(bad) for rule, bad in broken if bad)
