"""Finds the folder of kernels that a library opens, and its content for a GPU, based on the table of kernel files."""

from __future__ import annotations

import enum
import fnmatch
import glob
import posixpath
import re
from bisect import bisect_left
from functools import cache, cached_property
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import TargetId
from rocwheel.core.messages import first_of
from rocwheel.targets.catalog import Generic, load_catalog
from rocwheel.targets.compatibility import Fit, Runtime, fit
from rocwheel.targets.kernel_files import (
    Opener,
    PathPattern,
    compile_patterns,
    find_family,
    is_kernel_file,
    load_table,
    targets_in_path,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LIBRARY = re.compile(r"(?P<base>[^/]+?)(?:-[0-9a-f]{8}(?:[0-9a-f]{24})?)?\.(?P<kind>so|dll)(?:\.[0-9]+)*", re.ASCII)
"""The name of a library, including the hash that auditwheel (8 digits) or delvewheel (32 digits) inserts."""
_WORD = re.compile(r"gfx[0-9a-z]+(?:_[0-9]+)?")


def opener_of(path: str, soname: str = "") -> Opener | None:
    """Return the row for a library that opens a folder of kernels, found by SONAME or file name, or `None`.

    A renamed file still has its SONAME. A file with the same name as such a library is loaded in place of that library.
    """
    for name in (soname, posixpath.basename(path)):
        match = _LIBRARY.fullmatch(name)
        if match and (opener := _openers().get((match["kind"], _folded(match["base"], match["kind"])))):
            return opener
    return None


@cache
def _openers() -> dict[tuple[str, str], Opener]:
    found: dict[tuple[str, str], Opener] = {}
    for opener in load_table().openers:
        for name in opener.libraries:
            found["so", name] = opener
            for spelling in (name, name.removeprefix("lib")):  # DLLs have names with and without the prefix
                found["dll", _folded(spelling, "dll")] = opener
    return found


def _folded(name: str, kind: str) -> str:
    return name.lower() if kind == "dll" else name


class Loss(enum.Enum):
    """The consequence of a missing folder, or of a folder without kernels, for the library that needs it."""

    LOST = "lost"
    """The library finds no kernels for any GPU."""
    NOT_GIVEN = "not given"
    """The kernels are in packages that aren't among the inputs."""
    NONE = "none"
    """The kernels are in other packages, and the library isn't for the same GPUs."""


class KernelFolder(msgspec.Struct, frozen=True):
    """The folder that a library opens, and its content for each target."""

    opener: Opener
    place: str
    index: frozenset[TargetId]
    """The targets that have an index."""
    is_merged: bool
    """Whether a single index is for all targets."""
    code: frozenset[TargetId]
    """The targets that have kernels."""
    files: tuple[str, ...]
    """The paths of all relevant files, or an empty tuple for a folder without kernels for any GPU."""
    for_all: tuple[str, ...] = ()
    """The paths of files with code that are opened for any GPU."""
    is_there: bool = True
    """Whether the folder contains any files."""

    @property
    def named(self) -> list[str]:
        """The processors that have files, sorted."""
        return sorted({target.processor for target in (*self.index, *self.code)})

    @property
    def is_bare(self) -> bool:
        """Whether the folder is missing, or has no kernels for any GPU."""
        return not self.files

    def find_lack(self, gpu: TargetId, runtime: Runtime = Runtime.STOCK) -> str:
        """Return the files that the folder lacks for a GPU, as text that follows the word "which", or an empty string.

        A kind of file is considered only if the folder has such files for some target.
        """
        if self.is_bare:
            return "has no kernels for any GPU" if self.is_there else "is missing"
        lacks_index = self.index and not self.is_merged and not any(_suits(one, gpu, runtime) for one in self.index)
        lacks_code = self.code and not any(_suits(one, gpu, runtime) for one in self.code)
        for lacking, what, found in ((lacks_index, "no index", self.index), (lacks_code, "no kernels", self.code)):
            if lacking:
                is_setting = any(target.processor == gpu.processor for target in found)
                others = sorted({str(target) if is_setting else target.processor for target in found})
                return f"has {what} for {gpu if is_setting else gpu.processor}, only for {first_of(others, 8)}"
        return ""

    def find_lack_of_code(self, target: TargetId) -> str:
        """Return the files that the folder lacks for all GPUs that code for ``target`` serves, or an empty string.

        The result is empty if no files are lacking for at least one of these GPUs.
        """
        row = load_catalog().processors.get(target.processor)
        members = row.members if isinstance(row, Generic) else ()
        lacks = [self.find_lack(TargetId(name, **target.features)) for name in (target.processor, *members)]
        return lacks[0] if all(lacks) else ""


def _suits(named: TargetId, gpu: TargetId, runtime: Runtime) -> bool:
    """Return whether a library opens a file that is named for a target; unset GPU features may be on or off."""
    if any(gpu.features.get(name, setting) != setting for name, setting in named.features.items()):
        return False
    code = TargetId(named.processor.removesuffix("-strict"))
    return fit(code, TargetId(gpu.processor), runtime) is not Fit.NONE


class KernelFolders:
    """The folders of kernels among the files at ``places``."""

    def __init__(self, places: Iterable[str]) -> None:
        kept = {name for opener in load_table().openers for name in opener.for_all}
        self._all = tuple(places)
        named = (p for p in self._all if "gfx" in p or "TensileLibrary" in p or posixpath.basename(p) in kept)
        self._places = sorted(set(named))
        self._opened: dict[tuple[str, str], KernelFolder | None] = {}

    def opened_by(self, place: str, opener: Opener | None) -> KernelFolder | None:
        """Return the folder that the library at ``place`` opens, or `None` if the library doesn't open a folder.

        A folder that is missing or has no kernels is returned only if the library needs it.
        """
        if opener is None:
            return None
        key = (opener.name, posixpath.dirname(place))
        if key not in self._opened:
            found = self._find(opener, key[1])
            self._opened[key] = found or (self._bare(opener, key[1]) if opener.needed else None)
        return self._opened[key]

    def find_loss(self, place: str, opener: Opener, *, divided: bool, closed: bool) -> Loss:
        """Return the consequence if the folder of the library at ``place`` is missing or has no kernels.

        If the package is ``divided``, other packages contain the kernels, each for some GPUs. These packages are
        present if the environment is ``closed``, or if there are kernels for other libraries in the package.
        """
        if divided and not closed and not self._has_kernels(place.partition("/")[0]):
            return Loss.NOT_GIVEN
        return Loss.LOST if opener.everywhere or not divided else Loss.NONE

    def _has_kernels(self, top: str) -> bool:
        """Return whether a top-level folder has kernel files for any GPU."""
        return any(is_kernel_file(place) and targets_in_path(place) for place in self._below(top))

    def _bare(self, opener: Opener, folder: str) -> KernelFolder:
        last = [pattern for pattern in opener.folders if "*" not in pattern][-1]
        place = posixpath.normpath(posixpath.join(folder, last))
        is_there = any(other.startswith(f"{place}/") for other in self._all)
        return KernelFolder(opener, place, frozenset(), False, frozenset(), (), is_there=is_there)

    def _find(self, opener: Opener, folder: str) -> KernelFolder | None:
        for pattern in opener.folders:
            wanted = posixpath.normpath(posixpath.join(folder, pattern))
            escaped = posixpath.normpath(posixpath.join(glob.escape(folder), pattern))
            places = fnmatch.filter(self._folders, escaped) if "*" in pattern else [wanted]
            files = [(place, self._below(place)) for place in sorted(places)]
            if found := [(place, below) for place, below in files if below]:
                return _read_folder(opener, *found[0])
        return None

    @cached_property
    def _folders(self) -> frozenset[str]:
        found: set[str] = set()
        for place in self._places:
            folder = posixpath.dirname(place)
            while folder and folder not in found:
                found.add(folder)
                folder = posixpath.dirname(folder)
        return frozenset(found)

    def _below(self, folder: str) -> list[str]:
        start, found = f"{folder}/", []
        for place in self._places[bisect_left(self._places, start) :]:
            if not place.startswith(start):
                break
            found.append(place)
        return found


def _read_folder(opener: Opener, folder: str, places: Sequence[str]) -> KernelFolder | None:
    index, code, files = set[TargetId](), set[TargetId](), list[str]()
    patterns = compile_patterns(opener.index)
    is_merged, for_all = False, list[str]()
    for place in places:
        path = place.removeprefix(f"{folder}/")
        for_all += [place] if path in opener.for_all else []
        if path in opener.merged:
            is_merged = True
            files.append(place)
        found = index if _is_index(path, patterns) else code if path.endswith(opener.code) else None
        if found is not None and (targets := _named_targets(path)):
            found.update(targets)
            files.append(place)
    if not files:
        return None
    return KernelFolder(
        opener, folder, frozenset(index), is_merged, frozenset(code), tuple(files), for_all=tuple(for_all)
    )


def _is_index(path: str, patterns: Iterable[PathPattern]) -> bool:
    return any(pattern.match(path) for pattern in patterns)


def _named_targets(path: str) -> tuple[TargetId, ...]:
    """Return the targets in the name of a path below the folder, including the targets in families."""
    families = [family for word in _WORD.findall(path) if (family := find_family(word))]
    return (*targets_in_path(path), *(TargetId(name) for family in families for name in family.targets))
