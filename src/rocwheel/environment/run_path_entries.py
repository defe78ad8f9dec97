"""The entries of RPATH and RUNPATH (``ld.so(8)``): their dynamic string tokens, and the rules that they must follow.

In each folder, glibc's loader first searches ``glibc-hwcaps/LEVEL`` for the levels of the processor, the highest level
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
"""The levels of the x86-64 psABI. Every processor supports the first."""

_FOLDER = "glibc-hwcaps"


def hwcaps_folders(level: CpuLevel) -> tuple[str, ...]:
    """Return the subfolders that the loader searches on a processor of ``level``, in search order."""
    levels = get_args(CpuLevel)
    return tuple(f"{_FOLDER}/{name}" for name in reversed(levels[1 : levels.index(level) + 1]))


def has_level(folder: str) -> bool:
    """Return whether a folder holds libraries for some processors only. Run paths name its parent folder."""
    return f"/{_FOLDER}/" in f"/{folder}/"


def searched_folders(folders: Iterable[str], level: CpuLevel) -> tuple[str, ...]:
    """Return the folders that a run path must name to find a library that is in ``folders``.

    These are the folders for every processor. If there are no such folders, they are the parent folders of the
    subfolders that the loader searches on a processor of ``level``.
    """
    found = tuple(dict.fromkeys(folders))
    plain = tuple(folder for folder in found if not has_level(folder))
    above = ((f"/{folder}".removesuffix(f"/{inner}"), folder) for inner in hwcaps_folders(level) for folder in found)
    return plain or tuple(dict.fromkeys(top[1:] for top, folder in above if top != f"/{folder}"))


_WORKING_FOLDER = "/the-working-folder"
"""Stands for the working directory of the process. Files there are found only by accident."""

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
"""Bazel's folder names that packages may also have. They count only below a package and above site-packages."""
_NO_PYTHON = re.compile(r"^(\.\./)+(lib(64)?/)?python3?/site-packages(/|$)")
"""Site-packages without a Python minor version, which no environment has. ``lib`` may come from the way up."""
_ONE_PYTHON = re.compile(r"^(\.\./)+(lib(64)?/)?(python|pypy)3\.[0-9]+t?/site-packages(/|$)")


def split_run_path(text: str | None) -> tuple[str, ...]:
    """Return the entries of a run path. As for the loader, an empty entry stands for the working directory."""
    return tuple(text.split(":")) if text else ()


def is_origin_relative(entry: str) -> bool:
    """Return whether an entry begins with ``$ORIGIN`` as a whole path component."""
    return _ORIGIN_FIRST.match(entry) is not None


def is_relative(entry: str) -> bool:
    """Return whether an entry depends on the working directory, like one with a misquoted ``$ORIGIN``."""
    return not entry.startswith("/") and not is_origin_relative(entry) and not lost_origin(entry)


def goes_back(entry: str) -> bool:
    """Return whether an entry has ``..`` after a folder name. The kernel follows it only if the folder exists."""
    return _BACK.search(entry) is not None


def is_build_folder(entry: str) -> bool:
    """Return whether an entry leads to a folder that exists only during builds, judging by its name."""
    return _BUILD_FOLDER.search(entry.replace("$ORIGIN/", "").replace("${ORIGIN}/", "")) is not None


def is_writable_by_all(entry: str) -> bool:
    """Return whether every user of a machine can make the folder of an entry, with a library of their own in it."""
    return _WRITABLE.match(posixpath.normpath(entry)) is not None


def is_python_build_folder(folder: str) -> bool:
    """Return whether a folder, relative to site-packages, is a setuptools folder: ``build/lib.linux-x86_64-...``."""
    return _PYTHON_BUILD.search(folder) is not None


def lost_origin(entry: str) -> bool:
    """Return whether an entry looks like one that lost its ``$ORIGIN`` to a shell or make."""
    return _LOST_ORIGIN.match(entry) is not None


def leads_nowhere(entry: str, folder: str) -> bool:
    """Return whether an entry of a file in ``folder`` can't lead to a library on any user's machine.

    Such an entry leads to a folder that only builds or no environments have, or to the working directory, or has lost
    its ``$ORIGIN``. This test is narrower than `is_build_folder`, which goes by names that users' folders may also have
    (``/opt/site-packages``, ``/home/me/rocm/lib``, ``/workspace/rocm/lib``, or a package called ``sandbox``).
    """
    place = resolve_entry(entry, folder)
    if place is None:
        return not entry.startswith("/") or lost_origin(entry) or _DEAD.search(entry) is not None
    if _NO_PYTHON.search(place):
        return True
    below = place if place.startswith("..") else place.partition("/")[2]
    return _DEAD.search(place) is not None or _DEAD_IN_PACKAGE.search(below) is not None


def names_one_python(place: str) -> bool:
    """Return whether a folder, relative to site-packages, is below the site-packages of one Python version."""
    return _ONE_PYTHON.search(place) is not None


def redundant_steps(entry: str, folder: str) -> list[str]:
    """Return the folders that an entry of a file in ``folder`` enters and leaves again by ``..``.

    The kernel follows such an entry only if these folders exist. All are relative to site-packages. The result is empty
    for an entry that doesn't start with ``$ORIGIN``.
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
    """Return the path that an entry of a file in ``origin`` stands for. The file system resolves ``..``."""
    expanded = _ORIGIN.sub(lambda _: origin, entry)
    return expanded if expanded.startswith("/") else posixpath.join(_WORKING_FOLDER, expanded)


def resolve_entry(entry: str, folder: str) -> str | None:
    """Return the folder that an entry of a file in ``folder`` leads to, or `None` if it doesn't start with ``$ORIGIN``.

    Both folders are relative to site-packages. An empty string stands for site-packages itself.
    """
    match = _ORIGIN_FIRST.match(entry)
    if match is None:
        return None
    place = posixpath.normpath(posixpath.join(folder, entry[match.end() :].lstrip("/")))
    return "" if place == "." else place


def folders_beyond(release: Collection[str], run_path: str | None, folder: str) -> list[str]:
    """Return the folders outside of a release that the run path of a file in ``folder`` leads to, each once.

    ``release`` are top-level folders of site-packages. An RPATH must not lead outside of them: ``LD_LIBRARY_PATH``
    can't override it, and libraries loaded from there inherit it. Build folders belong to no package.
    """
    found = (resolve_entry(entry, folder) for entry in split_run_path(run_path))
    beyond = (place for place in found if place and place.partition("/")[0] not in release)
    return list(dict.fromkeys(place for place in beyond if not is_python_build_folder(place)))


class EntryRule(msgspec.Struct, frozen=True):
    """A rule with its name in the audit, a test for entries that break it, and a description."""

    name: str
    is_broken_by: Callable[[str], bool]
    words: str
    is_error: bool = True
    """Whether such an entry is always wrong, rather than valid on some machines."""

    def describe(self, entries: list[str]) -> str:
        """Return a description of the entries that break the rule."""
        return self.words.format(first_of(list(map(repr, entries))))


RELATIVE = EntryRule("run-path-relative", is_relative, "searches {} relative to the working directory")
EATEN_ORIGIN = EntryRule("run-path-eaten-origin", lost_origin, "has {}: a shell or make has removed $ORIGIN")
BUILD_FOLDER = EntryRule("run-path-build-folder", is_build_folder, "searches {}, a folder of the build machine")
HOST_FOLDER = EntryRule(
    "run-path-absolute", is_host_folder, "searches {}, absolute folders of the host", is_error=False
)
ENTRY_RULES = (RELATIVE, EATEN_ORIGIN, BUILD_FOLDER, HOST_FOLDER)
_CONTROL = re.compile(r"[\0-\x1f\x7f]")
_QUOTING = (
    "Write $ORIGIN unchanged, in single quotes; 'rocwheel runpath for --tool TOOL' prints the form that a build "
    "tool needs."
)


def entry_problems(source: Path | str, entries: Sequence[str], *, remedy: str = "") -> tuple[InputError, ...]:
    """Return an error about ``source`` for each rule whose violation is wrong wherever the file is installed.

    Control characters are also such a fault, because no user folder has them in its name.
    """
    expected = "$ORIGIN, $ORIGIN/FOLDER or an absolute path on users' machines"
    advice = f"{_QUOTING} {remedy}".rstrip()
    control = [repr(entry) for entry in entries if _CONTROL.search(entry)]
    found = [f"has control characters in {first_of(control)}"] if control else []
    found += _broken_rules(entries, is_error=True)
    return tuple(InputError(source, text, expected=expected, remedy=advice) for text in found)


def doubtful_entries(entries: Sequence[str]) -> tuple[str, ...]:
    """Return descriptions of the entries that are valid on some machines only."""
    return _broken_rules(entries, is_error=False)


def _broken_rules(entries: Sequence[str], *, is_error: bool) -> tuple[str, ...]:
    rules = [rule for rule in ENTRY_RULES if rule.is_error is is_error]
    broken = [(rule, list(filter(rule.is_broken_by, entries))) for rule in rules]
    return tuple(rule.describe(bad) for rule, bad in broken if bad)
