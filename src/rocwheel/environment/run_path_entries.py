"""The entries of RPATH and RUNPATH (``ld.so(8)``): their dynamic string tokens, and rules that an entry can break.

In each folder, glibc's loader first looks into ``glibc-hwcaps/LEVEL`` for the levels that the processor has, the
highest one first. Of the machines that ROCm runs on, only x86-64 has such levels.
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
"""The levels of the x86-64 psABI. Every processor has the first."""

_FOLDER = "glibc-hwcaps"


def hwcaps_folders(level: CpuLevel) -> tuple[str, ...]:
    """Return the subfolders that a processor of ``level`` takes libraries from, in the loader's order."""
    levels = get_args(CpuLevel)
    return tuple(f"{_FOLDER}/{name}" for name in reversed(levels[1 : levels.index(level) + 1]))


def has_level(folder: str) -> bool:
    """Return whether a folder holds libraries for some processors only: run paths name the folder above it."""
    return f"/{_FOLDER}/" in f"/{folder}/"


def searched_folders(folders: Iterable[str], level: CpuLevel) -> tuple[str, ...]:
    """Return the folders that run paths name to find a library that is in ``folders``.

    These are the folders that serve every processor. Only if there are none, they are the folders above those
    subfolders that a processor of ``level`` takes libraries from.
    """
    found = tuple(dict.fromkeys(folders))
    plain = tuple(folder for folder in found if not has_level(folder))
    above = ((f"/{folder}".removesuffix(f"/{inner}"), folder) for inner in hwcaps_folders(level) for folder in found)
    return plain or tuple(dict.fromkeys(top[1:] for top, folder in above if top != f"/{folder}"))


_WORKING_FOLDER = "/the-working-folder"
"""Stands for the folder in which the process was started: what is found there is chance."""

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
"""Names of Bazel's folders that packages may have, too: they count below a package and above site-packages alone."""
_NO_PYTHON = re.compile(r"^(\.\./)+(lib(64)?/)?python3?/site-packages(/|$)")
"""Site-packages without the minor version of a Python: no environment has it. ``lib`` may be that of the way up."""
_ONE_PYTHON = re.compile(r"^(\.\./)+(lib(64)?/)?(python|pypy)3\.[0-9]+t?/site-packages(/|$)")


def split_run_path(text: str | None) -> tuple[str, ...]:
    """Return the entries of a run path. An empty entry inside it stands for the working folder, as for the loader."""
    return tuple(text.split(":")) if text else ()


def is_origin_relative(entry: str) -> bool:
    """Return whether an entry begins with ``$ORIGIN`` as a whole path component."""
    return _ORIGIN_FIRST.match(entry) is not None


def is_relative(entry: str) -> bool:
    """Return whether an entry depends on the working folder, as one with a misquoted ``$ORIGIN`` does."""
    return not entry.startswith("/") and not is_origin_relative(entry) and not lost_origin(entry)


def goes_back(entry: str) -> bool:
    """Return whether an entry has ``..`` after a folder's name: the kernel follows it only if that folder exists."""
    return _BACK.search(entry) is not None


def is_build_folder(entry: str) -> bool:
    """Return whether an entry leads to a folder that only builds have, judging by its name."""
    return _BUILD_FOLDER.search(entry.replace("$ORIGIN/", "").replace("${ORIGIN}/", "")) is not None


def is_writable_by_all(entry: str) -> bool:
    """Return whether every user of a machine can make the folder of an entry, with a library of their own in it."""
    return _WRITABLE.match(posixpath.normpath(entry)) is not None


def is_python_build_folder(folder: str) -> bool:
    """Return whether a folder, relative to site-packages, is one of setuptools: ``build/lib.linux-x86_64-...``."""
    return _PYTHON_BUILD.search(folder) is not None


def lost_origin(entry: str) -> bool:
    """Return whether an entry is what a shell or make leaves of an entry that began with ``$ORIGIN``."""
    return _LOST_ORIGIN.match(entry) is not None


def leads_nowhere(entry: str, folder: str) -> bool:
    """Return whether an entry of a file in ``folder`` is proved to lead to no library on a user's machine.

    It leads to a folder that only builds or no environments have, to the one in which the process was started, or has
    lost its ``$ORIGIN``. Weaker than `is_build_folder`, which judges by names that a user's folders may have as well
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
    """Return whether a folder, relative to site-packages, is below the site-packages of one version of Python."""
    return _ONE_PYTHON.search(place) is not None


def redundant_steps(entry: str, folder: str) -> list[str]:
    """Return the folders that an entry of a file in ``folder`` enters and leaves again by ``..``.

    The kernel follows such an entry only if they exist. All are relative to site-packages; there are none in an entry
    that doesn't start with ``$ORIGIN``.
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
    """Return the path that an entry of a file in ``origin`` stands for; ``..`` is left for the file system."""
    expanded = _ORIGIN.sub(lambda _: origin, entry)
    return expanded if expanded.startswith("/") else posixpath.join(_WORKING_FOLDER, expanded)


def resolve_entry(entry: str, folder: str) -> str | None:
    """Return the folder that an entry of a file in ``folder`` leads to; None unless it starts with ``$ORIGIN``.

    Both folders are relative to site-packages, which is an empty text itself.
    """
    match = _ORIGIN_FIRST.match(entry)
    if match is None:
        return None
    place = posixpath.normpath(posixpath.join(folder, entry[match.end() :].lstrip("/")))
    return "" if place == "." else place


def folders_beyond(release: Collection[str], run_path: str | None, folder: str) -> list[str]:
    """Return the folders outside of a release that the run path of a file in ``folder`` leads to, each once.

    ``release`` are top-level folders of site-packages. RPATH may lead to none outside of them: ``LD_LIBRARY_PATH``
    can't override it, and what is loaded from there inherits it. A folder of a build is no package's.
    """
    found = (resolve_entry(entry, folder) for entry in split_run_path(run_path))
    beyond = (place for place in found if place and place.partition("/")[0] not in release)
    return list(dict.fromkeys(place for place in beyond if not is_python_build_folder(place)))


class EntryRule(msgspec.Struct, frozen=True):
    """A rule by its name in the audit, which entries break it, and what is said of them."""

    name: str
    is_broken_by: Callable[[str], bool]
    words: str
    is_error: bool = True
    """Whether such an entry is always wrong, rather than right on some machines."""

    def describe(self, entries: list[str]) -> str:
        """Return in words what is wrong with entries that break the rule."""
        return self.words.format(first_of(list(map(repr, entries))))


RELATIVE = EntryRule(
    "run-path-relative", is_relative, "searches {} relative to the folder in which the process was started"
)
EATEN_ORIGIN = EntryRule("run-path-eaten-origin", lost_origin, "has {}: a shell or make has removed $ORIGIN")
BUILD_FOLDER = EntryRule("run-path-build-folder", is_build_folder, "searches {}, a folder of the machine that built it")
HOST_FOLDER = EntryRule(
    "run-path-absolute", is_host_folder, "searches {}, absolute folders of the host", is_error=False
)
ENTRY_RULES = (RELATIVE, EATEN_ORIGIN, BUILD_FOLDER, HOST_FOLDER)
_CONTROL = re.compile(r"[\0-\x1f\x7f]")
_QUOTING = "Write $ORIGIN as it is, in single quotes; 'rocwheel runpath for --spell TOOL' prints what build tools take."


def entry_problems(source: Path | str, entries: Sequence[str], *, remedy: str = "") -> tuple[InputError, ...]:
    """Return an error about ``source`` for each rule by which entries are wrong wherever their file is installed.

    Control characters are such a fault, too: no folder of users has them in its name.
    """
    expected = "$ORIGIN, $ORIGIN/FOLDER or an absolute folder that users have"
    advice = f"{_QUOTING} {remedy}".rstrip()
    control = [repr(entry) for entry in entries if _CONTROL.search(entry)]
    found = [f"has control characters in {first_of(control)}"] if control else []
    found += _broken_rules(entries, is_error=True)
    return tuple(InputError(source, text, expected=expected, remedy=advice) for text in found)


def doubtful_entries(entries: Sequence[str]) -> tuple[str, ...]:
    """Return in words what is right on some machines only."""
    return _broken_rules(entries, is_error=False)


def _broken_rules(entries: Sequence[str], *, is_error: bool) -> tuple[str, ...]:
    rules = [rule for rule in ENTRY_RULES if rule.is_error is is_error]
    broken = [(rule, list(filter(rule.is_broken_by, entries))) for rule in rules]
    return tuple(rule.describe(bad) for rule, bad in broken if bad)
