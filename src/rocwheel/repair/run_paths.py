"""The run paths that the files of one wheel get: right where they are wrong, of one kind as far as that is safe.

Which folders they name is decided in `rocwheel.linking.run_path_choice`, which entries to packages that are not at hand
stay in `rocwheel.repair.kept_entries`, and under which tag they are written here (`_wheel_tag`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.installed.library_places import assumed_sdk_folders, missing_libraries, places_for_machine
from rocwheel.installed.requirements import packages_elsewhere, release_folders
from rocwheel.linking.entries import folders_beyond
from rocwheel.linking.run_path_choice import SetRunpath, fewest_folders, run_path_edit
from rocwheel.linking.system_libraries import allowed_libraries
from rocwheel.repair.kept_entries import entries_to_keep

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rocwheel.audit.settings import AuditSettings
    from rocwheel.installed.tree import Distribution, InstalledFile, Tree
    from rocwheel.linking.run_path_choice import LibraryPlaces
    from rocwheel.repair.options import RepairOptions

__all__ = ["run_path_edits"]


def run_path_edits(tree: Tree, owner: Distribution, options: RepairOptions) -> dict[str, SetRunpath]:
    """Return the edits of a wheel's files by the member's name; for the rules see `rocwheel.repair.plan`."""
    files = [file for file in tree.files_of[owner.source] if file.is_loadable]
    choice = _Choice(tree, owner, options.audit_settings)
    if options.tag is not None:
        return _made(files, {file.member: choice.edit(file, options.tag) for file in files})
    release = release_folders(tree, owner)
    rpaths = {file.member: choice.edit(file, RunpathTag.RPATH) for file in files}
    tag = _wheel_tag(files, rpaths, release)
    stay = {file.member for file in files if rpaths[file.member] is None and _is_rpath_within(file, release)}
    return _made(files, {file.member: choice.edit(file, tag) for file in files if file.member not in stay})


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

    def __init__(self, tree: Tree, owner: Distribution, settings: AuditSettings) -> None:
        self._tree = tree
        self._settings = settings
        self._sdk = assumed_sdk_folders(tree, closed=settings.closed)
        self._system = allowed_libraries(settings.system_libraries)
        self._has_others = bool(packages_elsewhere(tree, owner))
        self._by_machine: dict[int, LibraryPlaces] = {}

    def edit(self, file: InstalledFile, tag: RunpathTag) -> SetRunpath | None:
        """Return the edit that makes a file's run path right under a tag; None if it is right already."""
        assert file.elf is not None
        opened = self._settings.opened_by(file.path)
        places = self._places(file.elf.machine)
        search = fewest_folders([*file.elf.wanted, *opened], places, file.folder)
        is_lacking = bool(missing_libraries(file.elf, opened, places, self._system))
        kept = entries_to_keep(file, places, is_lacking=is_lacking, has_others=self._has_others)
        return run_path_edit(file.elf, file.folder, search, places, tag, kept)

    def _places(self, machine: int) -> LibraryPlaces:
        if machine not in self._by_machine:
            self._by_machine[machine] = places_for_machine(self._tree, self._sdk, machine, self._settings.cpu_level)
        return self._by_machine[machine]
