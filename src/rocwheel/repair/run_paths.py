"""The run paths that the files of one wheel get: right where they are wrong, of one kind as far as that is safe."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.installed.requirements import packages_elsewhere, release_folders
from rocwheel.linking.entries import folders_beyond
from rocwheel.linking.run_path_choice import Keeping, LibraryPlaces, SetRunpath, run_path_edit
from rocwheel.linking.sdk_layout import sdk_folders
from rocwheel.linking.system_libraries import allowed_libraries
from rocwheel.repair.advice import advise_run_path, choose_folders, library_folders

if TYPE_CHECKING:
    from rocwheel.installed.tree import Distribution, InstalledFile, Tree
    from rocwheel.repair.options import RepairOptions

__all__ = ["run_path_edits"]


def run_path_edits(tree: Tree, owner: Distribution, options: RepairOptions) -> dict[str, SetRunpath]:
    """Return the edits of a wheel's files by the member's name; for the rules see `rocwheel.repair.plan`."""
    return _RunPaths(tree, owner, options).edits()


class _Folders(msgspec.Struct, frozen=True):
    """Where libraries for one machine are, in order and for the rule."""

    folders: dict[str, tuple[str, ...]]
    places: LibraryPlaces


class _RunPaths:
    def __init__(self, tree: Tree, owner: Distribution, options: RepairOptions) -> None:
        self._tree = tree
        self._owner = owner
        self._options = options
        self._settings = options.audit_settings
        given = {other.name for other in tree.distributions}
        layout = () if self._settings.closed else sdk_folders()
        self._sdk = [name for name in dict.fromkeys(f.distribution for f in layout) if name not in given]
        self._by_machine: dict[int, _Folders] = {}
        self._system = allowed_libraries(self._settings.system_libraries)
        self._loadable = [file for file in tree.files_of[owner.source] if file.is_loadable]
        self._tag = options.tag or (RunpathTag.RPATH if self._keeps_rpath() else RunpathTag.RUNPATH)

    def edits(self) -> dict[str, SetRunpath]:
        return {file.member: edit for file in self._loadable if (edit := self._needed_edit(file)) is not None}

    def _keeps_rpath(self) -> bool:
        """Tell whether all run paths that the wheel has and that a repair leaves are RPATHs within its release."""
        edits = [(file, self._edit(file, RunpathTag.RPATH)) for file in self._loadable]
        values = [(file, file.run_path if edit is None else edit.value) for file, edit in edits]
        if not any(file.run_path for file, _ in values):
            return False
        if any(value and file.elf and file.elf.runpath is not None for file, value in values):
            return False
        return not any(folders_beyond(self._release, value, file.folder) for file, value in values)

    @cached_property
    def _release(self) -> frozenset[str]:
        return release_folders(self._tree, self._owner)

    def _needed_edit(self, file: InstalledFile) -> SetRunpath | None:
        is_old = self._options.tag is None and file.elf is not None and file.tag is not RunpathTag.RUNPATH
        if is_old and not folders_beyond(self._release, file.run_path, file.folder):
            edit = self._edit(file, RunpathTag.RPATH)
            return edit and self._edit(file, self._tag)
        return self._edit(file, self._tag)

    def _edit(self, file: InstalledFile, tag: RunpathTag) -> SetRunpath | None:
        assert file.elf is not None
        opened = self._settings.opened_by(file.path)
        there = self._there(file.elf.machine)
        search = tuple(choose_folders([*file.elf.wanted, *opened], there.folders, file.folder))
        lacks = bool(advise_run_path(file.elf, file.path, there.folders, self._system, opened).missing)
        keeping = Keeping(
            beyond=self._has_others and (file.elf.imports_dlopen or lacks),
            absent=self._has_others and lacks,
            hosts=lacks and not self._has_others,
        )
        return run_path_edit(file.elf, file.folder, search, there.places, tag, keeping)

    @cached_property
    def _has_others(self) -> bool:
        """Whether the wheel requires packages that are neither at hand nor the SDK's: run paths may lead there."""
        return bool(packages_elsewhere(self._tree, self._owner))

    def _there(self, machine: int) -> _Folders:
        if machine not in self._by_machine:
            folders = library_folders(self._tree, self._sdk, machine, self._settings.cpu_level)
            known = {folder for found in folders.values() for folder in found} | {f.folder for f in self._tree.files}
            providers = {name: frozenset(found) for name, found in folders.items()}
            self._by_machine[machine] = _Folders(folders, LibraryPlaces(providers, frozenset(known)))
        return self._by_machine[machine]
