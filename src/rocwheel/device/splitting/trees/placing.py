"""Where the files, links and folders of a tree go: the folder of the host, or that of a target."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.patch import FilePatch, write_patch
from rocwheel.core.reading import iter_pieces, unchanged
from rocwheel.core.writing import safe_mode
from rocwheel.device.editing.tree_copy import copy_file
from rocwheel.targets.kernel_files.classify import classify_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rocwheel.device.splitting.files import DeviceFile, HostFile, SplitPlan
    from rocwheel.device.splitting.trees.listing import Listing

__all__ = ["HOST_FOLDER", "Placement", "place_files"]

HOST_FOLDER = "host"
"""The folder with all that is not for one target."""


class Placement(msgspec.Struct, frozen=True):
    """The folder that each path goes to; paths for targets that are not kept are in ``left_out`` instead."""

    folder_of: dict[str, str]
    left_out: tuple[str, ...]


def place_files(listing: Listing, plan: SplitPlan) -> Placement:
    """Return where everything of a tree goes.

    A link goes where its name says, or with the file that it leads to; further names of a file go with the first.
    """
    folder_of = {file.path: HOST_FOLDER for file in plan.host} | {file.path: file.target for file in plan.device}
    folder_of |= {alias: folder_of[first] for alias, first in listing.aliases.items() if first in folder_of}
    left_out = [*plan.left_out, *(alias for alias in listing.aliases if alias not in folder_of)]
    for link in listing.links:
        folder = _folder_of_link(listing, link, folder_of, set(plan.targets))
        if folder is None:
            left_out.append(link)
        else:
            folder_of[link] = folder
    return Placement(folder_of, tuple(sorted(left_out)))


def _folder_of_link(listing: Listing, link: str, folder_of: Mapping[str, str], targets: set[str]) -> str | None:
    root = os.path.realpath(listing.root)
    aim = os.path.relpath(os.path.realpath(listing.root / link), root)
    if (folder := folder_of.get(aim)) is not None:
        return folder
    kernels = classify_path(link)
    if kernels is None:
        return HOST_FOLDER
    return kernels.target if kernels.target in targets else None


class Placer:
    """Makes the files of new trees below ``made``, one folder for the host and one for each target."""

    def __init__(self, listing: Listing, placement: Placement, made: Path) -> None:
        self._listing, self._placement, self._made = listing, placement, made
        self.left_out = frozenset(placement.left_out)

    def make_folders(self) -> None:
        """Make the host's folders, and those of targets as far as they hold something."""
        (self._made / HOST_FOLDER).mkdir(parents=True)
        for folder in self._listing.folders:
            (self._made / HOST_FOLDER / folder).mkdir()
        for path, folder in self._placement.folder_of.items():
            (self._made / folder / path).parent.mkdir(parents=True, exist_ok=True)

    def make_links(self) -> None:
        """Make symlinks with the texts that they have, and further names of files."""
        for link in self._listing.links:
            if link in self._placement.folder_of:
                self.path_of(link).symlink_to((self._listing.root / link).readlink())

    def path_of(self, path: str) -> Path:
        """Return where a file is made."""
        return self._made / self._placement.folder_of[path] / path

    def copy(self, path: str) -> None:
        """Copy a file as it is."""
        copy_file(self._listing.root / path, self.path_of(path))

    def write(self, file: HostFile) -> None:
        """Write a host file."""
        if file.patch is None:
            self.copy(file.path)
        else:
            self.write_patched(file, file.path, file.patch)

    def write_device(self, file: DeviceFile) -> None:
        """Write a file of a target; an archive that code was taken out of is in another place than its path says."""
        old, made = self._listing.root / file.path, self.path_of(file.path)
        if file.content.path == str(old):
            self.copy(file.path)
            return
        with file.content.view() as data, made.open("xb") as new:
            for piece in iter_pieces(data):
                new.write(piece)
        shutil.copystat(old, made)
        made.chmod(safe_mode(old.stat().st_mode))

    def write_patched(self, file: HostFile, path: str, patch: FilePatch) -> None:
        """Write ``file``, changed by ``patch``, under its name ``path``."""
        old, made = self._listing.root / path, self.path_of(path)
        with unchanged(old), file.content.view() as data, made.open("xb") as new:
            write_patch(new, data, patch)
        shutil.copystat(old, made)
        made.chmod(safe_mode(old.stat().st_mode))

    def link(self, alias: str, first: str) -> None:
        """Give the file made for ``first`` another name."""
        self.path_of(alias).hardlink_to(self.path_of(first))

    def finish_folders(self) -> None:
        """Give folders the permissions and times that they have in the old tree, the deepest first."""
        for folder in sorted(self._listing.folders, reverse=True):
            old = self._listing.root / folder
            for made in (self._made / name / folder for name in {HOST_FOLDER, *self._placement.folder_of.values()}):
                if made.is_dir():
                    shutil.copystat(old, made)
                    made.chmod(safe_mode(old.stat().st_mode))
