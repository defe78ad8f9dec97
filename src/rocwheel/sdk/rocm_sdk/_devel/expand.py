"""Expands the archive of development files into the tree ``_rocm_sdk_devel``.

The tree appears whole, by a rename, or not at all: until then its folder is empty. RECORD of rocm-sdk-devel is true all
the while, and an uninstall also removes what a killed process left; the next process starts over.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress

from .. import _build_info
from .._packages import reinstallation_hint
from .._platform import this_platform
from .archives.archive import archive_members, open_archive
from .device_links import linked_files
from .manifest import read_links
from .modes import make_folder, modes_like, write_text
from .place import STATE, DevelError
from .record import list_folders, list_tree, listed_hash, unlist_folders, unlist_package
from .tree import DevelTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from .place import DevelPlace

__all__ = ["ensure_expanded"]


def ensure_expanded(place: DevelPlace) -> None:
    """Expand the archive unless another process has done so meanwhile. Raises `DevelError` when it can't."""
    try:
        with place.locked():
            archive = place.archive
            if archive is not None:
                if not _is_made_from(place, archive):
                    _expand(place, archive)
                list_tree(place, archive, linked_files(place))
                place.scratch.touch()  # so that the next process ends this work if this one can't
                archive.unlink()
            _unlist_package(place)
    except OSError as e:
        if _is_whole(place):
            return  # only what comes after failed
        raise DevelError(_failure_text(place, e)) from e


def _unlist_package(place: DevelPlace) -> None:
    try:
        unlist_package(place)
        place.scratch.unlink(missing_ok=True)
    except OSError:
        with suppress(OSError):
            place.scratch.touch()
        raise


def _is_whole(place: DevelPlace) -> bool:
    """Return whether there is a whole tree, as far as a disk tells that has just failed."""
    try:
        archive = place.archive
        return archive is None or _is_made_from(place, archive)
    except OSError:
        return False


def _is_made_from(place: DevelPlace, archive: Path) -> bool:
    """Return whether there is a whole tree from this archive, which RECORD doesn't list once it lists the tree."""
    state, listed = place.read_state(), listed_hash(place, archive)
    if listed:
        return state.get("archive") == listed
    return state.get("archive_file") == _file_facts(archive)


def _file_facts(archive: Path) -> list[int]:
    facts = archive.stat()
    return [facts.st_size, facts.st_mtime_ns]


def _failure_text(place: DevelPlace, error: OSError) -> str:
    where = f": {error.filename}" if error.filename else ""
    others = ", while no other program has files there open," if this_platform().is_windows else ""
    return (
        f"The ROCm development files can't be expanded in {place.site} ({error.strerror}{where}). "
        f"Run `rocm-sdk init` once{others} as a user who may write there, with enough free space, "
        "before using them read-only."
    )


def _expand(place: DevelPlace, archive: Path) -> None:
    """Make the tree from its archive; the caller holds the lock.

    Raises `DevelError` for an archive that is damaged or unsafe, and when files that it links to aren't installed.
    """
    _make_root(place)
    tree = DevelTree(place)
    try:
        make_folder(place.partial, modes_like(place.package))
        _fill(place, tree, archive)
        _complete(place, archive, tree.packages)
    except BaseException:
        _withdraw(place)
        raise


def _make_root(place: DevelPlace) -> None:
    """Make the folder of the tree, or empty it, after removing the mark that says that the tree is whole."""
    if place.root.is_symlink() or place.root.is_file():
        place.root.unlink()
    if not place.root.exists():
        make_folder(place.root, modes_like(place.package))
    list_folders(place)
    if place.partial.exists():
        this_platform().patiently(shutil.rmtree, place.partial)
    this_platform().empty_folder(place.root, first=STATE)


def _withdraw(place: DevelPlace) -> None:
    """Remove what an expansion that fails has made, as far as that is possible."""
    shutil.rmtree(place.partial, ignore_errors=True)
    with suppress(OSError):
        unlist_folders(place)
        place.root.rmdir()


def _fill(place: DevelPlace, tree: DevelTree, archive: Path) -> None:
    try:
        with open_archive(archive) as tar:
            for member in archive_members(tar):
                tree.add(tar, member)
        for path, target in read_links(place).items():
            tree.add_link(path, target)
        tree.finish()
    except (DevelError, OSError):
        raise
    except Exception as e:  # each decompressor has errors of its own
        msg = f"{archive}: damaged ({e}). Reinstall: {reinstallation_hint('devel')}"
        raise DevelError(msg) from e


def _complete(place: DevelPlace, archive: Path, packages: list[str]) -> None:
    """Write the last files of the tree, then give it its name."""
    made_from = {"archive": listed_hash(place, archive), "archive_file": _file_facts(archive)}
    state = {"version": _build_info.VERSION, **made_from, "packages": packages, "devices": {}}
    modes = modes_like(place.package)
    write_text(place.partial / "__init__.py", "", modes)
    write_text(place.partial / STATE, json.dumps(state), modes)
    this_platform().move_folder(place.partial, place.root)
