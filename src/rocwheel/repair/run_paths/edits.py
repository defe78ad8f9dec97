"""The run paths that the files of one wheel get: right where they are wrong, of one kind as far as that is safe.

Which folders they name is decided in `rocwheel.linking.run_path_choice`, which entries to what is not at hand stay in
`rocwheel.repair.run_paths.kept_entries`, whether they may lead to the SDK's packages in
`rocwheel.audit.wheel_toolkits`.
A run path stays under its tag unless the options name one: an RPATH may be there to come before ``LD_LIBRARY_PATH``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.audit.wheel_toolkits import Opens, sdk_library_folders
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.installed.library_places import (
    assumed_package_folders,
    assumed_sdk_folders,
    missing_libraries,
    places_for_machine,
)
from rocwheel.linking.entries import leads_nowhere, split_run_path
from rocwheel.linking.known.system_libraries import allowed_libraries
from rocwheel.linking.run_path_choice import KeptEntries, LibraryPlaces, SetRunpath, fewest_folders, run_path_edit
from rocwheel.repair.run_paths.kept_entries import entries_to_keep, opened_names, what_it_opens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rocwheel.audit.wheel_toolkits import Toolkit
    from rocwheel.installed.tree import Distribution, InstalledFile, Tree
    from rocwheel.linking.tree_disk import InstalledLayout
    from rocwheel.repair.options import RepairOptions

__all__ = ["OpenedByFile", "milder_edits", "opened_by_files", "run_path_edits"]


class OpenedByFile(NamedTuple):
    """What is known about the libraries that a file opens by name."""

    opens: Opens
    names: tuple[str, ...]
    """Those that packages have, and that the file may have found in folders which it gives up."""


def opened_by_files(
    tree: Tree, owner: Distribution, options: RepairOptions, toolkit: Toolkit
) -> dict[str, OpenedByFile]:
    """Return what is known about the libraries that the files of a wheel open by name, by their source."""
    files = [file for file in tree.files_of[owner.source] if file.is_loadable]
    choice = _Choice(tree, options, toolkit)
    return {file.source: OpenedByFile(choice.opens(file), choice.stood_in_for(file)) for file in files}


def run_path_edits(tree: Tree, owner: Distribution, options: RepairOptions, toolkit: Toolkit) -> dict[str, SetRunpath]:
    """Return the edits of a wheel's files by the member's name; for the rules see `rocwheel.repair.plan`.

    A file with a right run path is edited as well if older releases of glibc refuse its segments.
    """
    files = [file for file in tree.files_of[owner.source] if file.is_loadable]
    edits = _wrong_run_paths(files, tree, options, toolkit)
    return {file.member: edit for file in files if (edit := edits.get(file.member) or _realignment(file)) is not None}


def _realignment(file: InstalledFile) -> SetRunpath | None:
    """Return the edit that only changes the alignment of a file's segments; None where that changes nothing."""
    assert file.elf is not None
    edit = SetRunpath(file.run_path or "", file.tag or RunpathTag.RUNPATH)
    return edit if edit.applied_to(file.elf).segments != file.elf.segments else None


def _wrong_run_paths(
    files: Sequence[InstalledFile], tree: Tree, options: RepairOptions, toolkit: Toolkit
) -> dict[str, SetRunpath]:
    choice = _Choice(tree, options, toolkit)
    tags = {file.member: options.tag or file.tag for file in files}
    edits = {file.member: choice.edit(file, tag) for file in files if (tag := tags[file.member]) is not None}
    tag = _new_tag(files, edits)
    edits |= {file.member: choice.edit(file, tag) for file in files if tags[file.member] is None}
    found = ((file.member, edits[file.member]) for file in files)
    return {member: edit for member, edit in found if edit is not None}


def milder_edits(
    tree: Tree, owner: Distribution, options: RepairOptions, toolkit: Toolkit
) -> dict[str, tuple[SetRunpath, ...]]:
    """Return edits for files whose edit in `run_path_edits` would take something away, by the member's name.

    The one that takes least comes last: with every entry that isn't proved to lead nowhere, then without the folders
    that the file lacks.
    """
    files = [file for file in tree.files_of[owner.source] if file.is_loadable and file.run_path]
    choice = _Choice(tree, options, toolkit)
    return {file.member: tuple(choice.milder(file, options.tag or file.tag)) for file in files if file.tag}


def _new_tag(files: Sequence[InstalledFile], edits: Mapping[str, SetRunpath | None]) -> RunpathTag:
    """Return the tag for files that have no run path yet: RPATH if the wheel's others, once edited, are RPATHs."""
    edited = [(file.tag, edits.get(file.member)) for file in files if file.run_path]
    tags = {tag if edit is None else edit.tag for tag, edit in edited if edit is None or edit.value}
    return RunpathTag.RPATH if tags == {RunpathTag.RPATH} else RunpathTag.RUNPATH


class _Choice:
    """Chooses the run path of each file of a wheel by what is installed with it."""

    def __init__(self, tree: Tree, options: RepairOptions, toolkit: Toolkit) -> None:
        self._tree = tree
        self._settings = options.audit_settings
        closed = self._settings.closed
        self._assumed = (*assumed_sdk_folders(tree, closed=closed), *assumed_package_folders(tree, closed=closed))
        self._system = allowed_libraries(self._settings.system_libraries)
        self._toolkit = toolkit
        self._by_machine: dict[tuple[int, bool, InstalledLayout], LibraryPlaces] = {}
        self._sdk_folders: frozenset[str] = frozenset() if toolkit.is_sdk else sdk_library_folders(tree)
        self._without_sdk: dict[tuple[int, bool, InstalledLayout, frozenset[str]], LibraryPlaces] = {}

    def edit(self, file: InstalledFile, tag: RunpathTag) -> SetRunpath | None:
        """Return the edit that makes a file's run path right under a tag; None if it is right already."""
        assert file.elf is not None
        places = self._places(file, with_assumed=True)
        sure = self._places(file, with_assumed=self._toolkit.trusts_layout)
        is_complete = not self._toolkit.keeps and not missing_libraries(
            file.elf, self._opened(file), sure, self._system
        )
        opens = self.opens(file)
        kept = entries_to_keep(file, places, is_complete=is_complete, toolkit=self._toolkit, opens=opens)
        return self._edit(file, tag, kept)

    def opens(self, file: InstalledFile) -> Opens:
        """Return what is known about the libraries that a file opens by name, where that decides about its run path."""
        if not self._toolkit.trusts_layout:
            return Opens.NOTHING if file.elf is None or not file.elf.imports_dlopen else Opens.ANYTHING
        return what_it_opens(file, self._declared(file), self._places(file, with_assumed=True), self._system)

    def stood_in_for(self, file: InstalledFile) -> tuple[str, ...]:
        """Return the libraries that a file's strings name and that it may have found in folders which it gives up.

        The packages at hand, or the SDK's layout, have them.
        """
        places, opens = self._places(file, with_assumed=True), self.opens(file)
        entries = [entry for entry in split_run_path(file.run_path) if not leads_nowhere(entry, file.folder)]
        led_to = {entry: places.resolve(entry, file.folder) or entry for entry in entries}
        gone = [
            place for place in led_to.values() if place not in places.folders and self._toolkit.gives_up(place, opens)
        ]
        return tuple(name for name in sorted(opened_names(file)) if gone and name in places.providers)

    def milder(self, file: InstalledFile, tag: RunpathTag) -> Iterator[SetRunpath]:
        """Yield the edits of a file that take ever less away, those that change nothing left out."""
        assert file.elf is not None
        places = self._places(file, with_assumed=True)
        kept = entries_to_keep(file, places, is_complete=False, toolkit=self._toolkit)
        alive = [entry for entry in split_run_path(file.run_path) if not leads_nowhere(entry, file.folder)]
        bare = SetRunpath(":".join(dict.fromkeys(alive)), tag)
        found = [self._edit(file, tag, kept), bare]
        yield from (edit for edit in found if edit is not None and edit.applied_to(file.elf) != file.elf)

    def _edit(self, file: InstalledFile, tag: RunpathTag, kept: KeptEntries) -> SetRunpath | None:
        assert file.elf is not None
        places = self._places(file, with_assumed=True)
        opened = self._opened(file)
        search = fewest_folders([*file.elf.wanted, *opened], places, file.folder)
        return run_path_edit(file.elf, file.folder, search, places, tag, kept, opened)

    def _opened(self, file: InstalledFile) -> tuple[str, ...]:
        """Return what a file is known to open by name: by the settings, and by its strings where its run path leads."""
        places = self._places(file, with_assumed=True)
        led_to = {places.resolve(entry, file.folder) for entry in split_run_path(file.run_path)}
        providers = places.providers
        names = sorted(opened_names(file)) if self._toolkit.trusts_layout else ()
        found = [name for name in names if led_to & {*providers.get(name, ())}]
        return tuple(dict.fromkeys((*self._declared(file), *found)))

    def _declared(self, file: InstalledFile) -> tuple[str, ...]:
        """Return what the settings say that a file opens by name, but for the file itself, which is loaded already."""
        assert file.elf is not None
        return tuple(name for name in self._settings.opened_by(file.path) if name != file.elf.soname)

    def _places(self, file: InstalledFile, *, with_assumed: bool) -> LibraryPlaces:
        assert file.elf is not None
        layout = self._tree.owners[file.distribution].layout
        key = (file.elf.machine, with_assumed, layout)
        if key not in self._by_machine:
            assumed = self._assumed if with_assumed else ()
            level = self._settings.cpu_level
            found = places_for_machine(self._tree, assumed, file.elf.machine, level)
            self._by_machine[key] = msgspec.structs.replace(found, layout=layout)
        found = self._by_machine[key]
        if self._toolkit.is_sdk:
            return found
        led_to = {found.resolve(entry, file.folder) for entry in split_run_path(file.run_path)}
        left_out = self._sdk_folders - led_to - {file.folder}
        # Most files of a wheel lead to the same folders of the SDK, or to none.
        known = (*key, left_out)
        if known not in self._without_sdk:
            self._without_sdk[known] = _without(left_out, found)
        return self._without_sdk[known]


def _without(left_out: frozenset[str], places: LibraryPlaces) -> LibraryPlaces:
    """Return the places without some folders: those of the SDK's packages that a file doesn't lead to yet."""
    found = {name: tuple(f for f in held if f not in left_out) for name, held in places.providers.items()}
    return msgspec.structs.replace(places, providers={name: held for name, held in found.items() if held})
