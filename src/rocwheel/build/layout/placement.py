"""Where the files of a runtime package go: symlink-free, every shared library under its SONAME alone."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.artifact import FileKind
from rocwheel.artifacts.catalog import Entry, PrefixIndex, describe_end, resolve_link
from rocwheel.build.layout.selection import PathConflictError
from rocwheel.build.plan import Dropped
from rocwheel.core.errors import ProblemsError
from rocwheel.targets.overlay_names import split_overlay_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocwheel.binary.elf.facts import Elf
    from rocwheel.build.layout.facts import Facts
    from rocwheel.build.layout.selection import PrefixEntries

__all__ = ["PlacedFile", "PlacedStub", "Placement", "place_runtime"]


class PlacedFile(msgspec.Struct, frozen=True):
    """A file of an artifact in its place; ``entry`` is the file itself, never a link to it."""

    path: str
    entry: Entry


class PlacedStub(msgspec.Struct, frozen=True):
    """A stub in the place of a symlink to an executable; ``target`` is relative to the stub's folder."""

    path: str
    entry: Entry
    target: str
    machine: int


class Placement(msgspec.Struct, frozen=True):
    """What a package ships, by path in its platform module."""

    files: dict[str, PlacedFile]
    stubs: dict[str, PlacedStub]
    other_names: dict[str, str]
    """Other names of shipped shared libraries: path in the artifacts' prefix to the path of the shipped file."""
    dropped: tuple[Dropped, ...]

    def has(self, path: str) -> bool:
        """Return whether something is shipped at ``path``."""
        return path in self.files or path in self.stubs


def place_runtime(
    selected: PrefixEntries, prefix: PrefixIndex, facts: Facts, elsewhere: Mapping[str, str]
) -> Placement:
    """Place the selected entries of a package.

    Symlinks are followed in ``prefix``. ``elsewhere`` holds the paths that required packages ship, each with its place
    relative to this package's platform module.

    Raises `ProblemsError` with every pair of different files for one place.
    """
    placer = _Placer(selected, prefix, facts, elsewhere)
    for entry in selected.values():
        placer.place(entry)
    if placer.problems:
        subject = "places of shared libraries"
        raise ProblemsError(subject, placer.problems)
    return Placement(placer.files, placer.stubs, placer.other_names, tuple(sorted(placer.dropped)))


class _Placer:
    def __init__(
        self, selected: PrefixEntries, prefix: PrefixIndex, facts: Facts, elsewhere: Mapping[str, str]
    ) -> None:
        self._selected = selected
        self._prefix = prefix
        self._facts = facts
        self._elsewhere = elsewhere
        self.files: dict[str, PlacedFile] = {}
        self.stubs: dict[str, PlacedStub] = {}
        self.other_names: dict[str, str] = {}
        self.dropped: list[Dropped] = []
        self.problems: list[PathConflictError] = []

    def place(self, entry: Entry) -> None:
        if entry.kind is FileKind.FILE:
            self._place_file(entry)
        elif entry.kind is FileKind.SYMLINK:
            self._place_link(entry)

    def _place_file(self, entry: Entry) -> None:
        place = self._library_place(entry) or entry.path
        if place != entry.path:
            self.other_names[entry.path] = place
        self._put(place, entry)

    def _put(self, place: str, entry: Entry) -> None:
        there = self.files.setdefault(place, PlacedFile(place, entry))
        if there.entry != entry:
            one, other = (f"{claim.artifact} ({claim.path})" for claim in (there.entry, entry))
            self.problems.append(PathConflictError(place, one, other))

    def _library_place(self, entry: Entry) -> str | None:
        """Return where a shared library goes: its SONAME, unless another file of its folder has the better claim.

        One for a single GPU target stays beside the library that it stands in for.
        """
        elf = self._facts.elf(entry)
        if elf is None or not elf.is_shared_library or not elf.soname or split_overlay_path(entry.path):
            return None
        place = posixpath.join(posixpath.dirname(entry.path), elf.soname)
        holder = self._file_at(place)
        return place if holder is None or holder == entry else None

    def _place_link(self, link: Entry) -> None:
        resolution = resolve_link(self._prefix, link.path)
        target = resolution.entry
        if target is None:
            self._drop(link, f"a symlink {describe_end(resolution)}")
            return
        elf = self._facts.elf(target)
        if elf is not None and elf.is_shared_library and elf.soname:
            self._place_library_link(link, target, elf.soname)
        elif self._facts.is_program(target):
            self._place_stub(link, target, elf)
        else:
            self._put(link.path, target)

    def _place_library_link(self, link: Entry, target: Entry, soname: str) -> None:
        place = self._library_place(target) or target.path
        if target.path in self._selected:
            if link.path != place:
                self.other_names[link.path] = place
        elif target.path in self._elsewhere:
            self._drop(link, f"{target.path} is in a package that this one requires")
        elif posixpath.basename(link.path) == soname:
            self._put(link.path, target)
        else:
            self._drop(link, f"another name for {target.path}, which ships under its SONAME {soname}")

    def _place_stub(self, link: Entry, target: Entry, elf: Elf | None) -> None:
        place = target.path if target.path in self._selected else self._elsewhere.get(target.path)
        if place is None:
            self._drop(link, f"{target.path} is in no package that this one requires")
            return
        relative = posixpath.relpath(place, posixpath.dirname(link.path))
        machine = self._facts.machine if elf is None else elf.machine
        self.stubs[link.path] = PlacedStub(link.path, link, relative, machine)

    def _file_at(self, path: str) -> Entry | None:
        """Return the file that a path of the prefix holds or leads to."""
        return resolve_link(self._prefix, path).entry

    def _drop(self, entry: Entry, reason: str) -> None:
        self.dropped.append(Dropped(entry.path, str(entry.artifact), reason))
