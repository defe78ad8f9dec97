"""The run paths that the files of one wheel get: right where they are wrong, of one kind as far as that is safe.

Which folders they name is decided in `rocwheel.linking.run_path_choice`, which entries to what is not at hand stay in
`rocwheel.repair.run_paths.kept_entries`, whether they may lead to the SDK's packages in `rocwheel.repair.toolkit`, and
under which tag they are written here (`_wheel_tag`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.installed.library_places import assumed_sdk_folders, missing_libraries, places_for_machine
from rocwheel.installed.requirements import release_folders
from rocwheel.linking.entries import folders_beyond, leads_nowhere, resolve_entry, split_run_path
from rocwheel.linking.known.sdk_layout import sdk_folders
from rocwheel.linking.known.sdk_names import is_sdk_package
from rocwheel.linking.known.system_libraries import allowed_libraries
from rocwheel.linking.run_path_choice import KeptEntries, LibraryPlaces, SetRunpath, fewest_folders, run_path_edit
from rocwheel.repair.run_paths.kept_entries import entries_to_keep

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rocwheel.installed.tree import Distribution, InstalledFile, Tree
    from rocwheel.repair.options import RepairOptions
    from rocwheel.repair.toolkit import Toolkit

__all__ = ["milder_edits", "run_path_edits"]


def run_path_edits(tree: Tree, owner: Distribution, options: RepairOptions, toolkit: Toolkit) -> dict[str, SetRunpath]:
    """Return the edits of a wheel's files by the member's name; for the rules see `rocwheel.repair.plan`.

    A file with a right run path is edited as well if older releases of glibc refuse its segments.
    """
    files = [file for file in tree.files_of[owner.source] if file.is_loadable]
    edits = _wrong_run_paths(files, tree, owner, options, toolkit)
    return {file.member: edit for file in files if (edit := edits.get(file.member) or _realignment(file)) is not None}


def _realignment(file: InstalledFile) -> SetRunpath | None:
    """Return the edit that only changes the alignment of a file's segments; None where that changes nothing."""
    assert file.elf is not None
    edit = SetRunpath(file.run_path or "", file.tag or RunpathTag.RUNPATH)
    return edit if edit.applied_to(file.elf).segments != file.elf.segments else None


def _wrong_run_paths(
    files: Sequence[InstalledFile], tree: Tree, owner: Distribution, options: RepairOptions, toolkit: Toolkit
) -> dict[str, SetRunpath]:
    choice = _Choice(tree, options, toolkit)
    if options.tag is not None:
        return _made(files, {file.member: choice.edit(file, options.tag) for file in files})
    release = release_folders(tree, owner)
    rpaths = {file.member: choice.edit(file, RunpathTag.RPATH) for file in files}
    tag = _wheel_tag(files, rpaths, release)
    heirs = {file.member for file in files if choice.hands_on(file, rpaths[file.member])}
    stay = {file.member for file in files if rpaths[file.member] is None and _is_rpath_within(file, release)}
    others = {file.member: choice.edit(file, tag) for file in files if file.member not in stay | heirs}
    return _made(files, {**others, **{member: rpaths[member] for member in heirs}})


def milder_edits(
    tree: Tree, owner: Distribution, options: RepairOptions, toolkit: Toolkit
) -> dict[str, tuple[SetRunpath, ...]]:
    """Return edits for files whose edit in `run_path_edits` would take something away, by the member's name.

    The one that takes least comes last: with the old tag, then with every entry that isn't proved to lead nowhere,
    then without the folders that the file lacks.
    """
    files = [file for file in tree.files_of[owner.source] if file.is_loadable and file.run_path]
    choice = _Choice(tree, options, toolkit)
    return {file.member: tuple(choice.milder(file)) for file in files}


def _made(files: Sequence[InstalledFile], edits: Mapping[str, SetRunpath | None]) -> dict[str, SetRunpath]:
    found = ((file.member, edits.get(file.member)) for file in files)
    return {member: edit for member, edit in found if edit is not None}


def _wheel_tag(
    files: Sequence[InstalledFile], rpaths: Mapping[str, SetRunpath | None], release: Collection[str]
) -> RunpathTag:
    """Return RPATH if all run paths that a repair leaves in the wheel are RPATHs within its release, else RUNPATH.

    ``rpaths`` are the edits that would make the files right as RPATHs.
    """
    edits = ((file, rpaths[file.member]) for file in files)
    values = [(file, file.run_path if edit is None else edit.value) for file, edit in edits]
    has_any = any(file.run_path for file in files)
    has_runpath = any(value and file.tag is RunpathTag.RUNPATH for file, value in values)
    leads_beyond = any(folders_beyond(release, value, file.folder) for file, value in values)
    return RunpathTag.RPATH if has_any and not has_runpath and not leads_beyond else RunpathTag.RUNPATH


def _is_rpath_within(file: InstalledFile, release: Collection[str]) -> bool:
    """Return whether a file has no RUNPATH, and only run path entries that lead into the wheel's release."""
    is_old = file.elf is not None and file.tag is not RunpathTag.RUNPATH
    return is_old and not folders_beyond(release, file.run_path, file.folder)


class _Choice:
    """Chooses the run path of each file of a wheel by what is installed with it."""

    def __init__(self, tree: Tree, options: RepairOptions, toolkit: Toolkit) -> None:
        self._tree = tree
        self._settings = options.audit_settings
        self._sdk = assumed_sdk_folders(tree, closed=self._settings.closed)
        self._system = allowed_libraries(self._settings.system_libraries)
        self._toolkit = toolkit
        self._by_machine: dict[tuple[int, bool], LibraryPlaces] = {}

    def edit(self, file: InstalledFile, tag: RunpathTag) -> SetRunpath | None:
        """Return the edit that makes a file's run path right under a tag; None if it is right already."""
        assert file.elf is not None
        opened = self._opened(file)
        places = self._places(file, with_assumed=True)
        replaces_system = self._toolkit.replaces_system
        sure = self._places(file, with_assumed=replaces_system)
        is_complete = not missing_libraries(file.elf, opened, sure, self._system)
        kept = entries_to_keep(file, places, is_complete=is_complete, replaces_system=replaces_system)
        return self._edit(file, tag, kept)

    def milder(self, file: InstalledFile) -> Iterator[SetRunpath]:
        """Yield the edits of a file that take ever less away, those that change nothing left out."""
        assert file.elf is not None
        assert file.tag is not None
        kept = entries_to_keep(file, self._places(file, with_assumed=True), is_complete=False)
        alive = [entry for entry in split_run_path(file.run_path) if not leads_nowhere(entry, file.folder)]
        bare = SetRunpath(":".join(dict.fromkeys(alive)), file.tag)
        found = [self.edit(file, file.tag), self._edit(file, file.tag, kept), bare]
        yield from (edit for edit in found if edit is not None and edit.applied_to(file.elf) != file.elf)

    def hands_on(self, file: InstalledFile, edit: SetRunpath | None) -> bool:
        """Return whether libraries that are not at hand may inherit the RPATH that a file has once it is edited."""
        value = file.run_path if edit is None else edit.value
        places = self._places(file, with_assumed=True)
        return file.tag is RunpathTag.RPATH and places.leads_beyond(value, file.folder)

    def _edit(self, file: InstalledFile, tag: RunpathTag, kept: KeptEntries) -> SetRunpath | None:
        assert file.elf is not None
        places = self._places(file, with_assumed=True)
        opened = self._opened(file)
        search = fewest_folders([*file.elf.wanted, *opened], places, file.folder)
        return run_path_edit(file.elf, file.folder, search, places, tag, kept, opened)

    def _opened(self, file: InstalledFile) -> tuple[str, ...]:
        """Return what the settings say that a file opens by name, but for the file itself, which is loaded already."""
        assert file.elf is not None
        return tuple(name for name in self._settings.opened_by(file.path) if name != file.elf.soname)

    def _places(self, file: InstalledFile, *, with_assumed: bool) -> LibraryPlaces:
        assert file.elf is not None
        key = (file.elf.machine, with_assumed)
        if key not in self._by_machine:
            assumed = self._sdk if with_assumed else ()
            level = self._settings.cpu_level
            self._by_machine[key] = places_for_machine(self._tree, assumed, file.elf.machine, level)
        found = self._by_machine[key]
        return found if self._toolkit.is_sdk else _without_sdk(found, self._tree, file)


def _without_sdk(places: LibraryPlaces, tree: Tree, file: InstalledFile) -> LibraryPlaces:
    """Return the places without the folders of the SDK's packages that the file's run path doesn't lead to yet."""
    given = {owner.source for owner in tree.distributions if is_sdk_package(owner.name)}
    folders = {other.folder for other in tree.files if other.distribution in given}
    folders |= {folder.folder for folder in sdk_folders()}
    led_to = {resolve_entry(entry, file.folder) for entry in split_run_path(file.run_path)}
    left_out = folders - led_to - {file.folder}
    found = {name: tuple(f for f in held if f not in left_out) for name, held in places.providers.items()}
    return LibraryPlaces({name: held for name, held in found.items() if held}, places.folders)
