"""Expands the archive of development files into the tree ``_rocm_sdk_devel``.

The tree appears whole, by a rename, or not at all: until then its folder is empty. RECORD of rocm-sdk-devel is true all
the while, and an uninstall also removes what a killed process left; the next process starts over.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress

from .. import _build_info
from .._installing import reinstallation_hint
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
                made_from = _describe(place, archive)
                if not _is_made_from(place, made_from):
                    _expand(place, archive, made_from)
                list_tree(place, archive, linked_files(place))
                _require_same(archive, made_from)
                place.scratch.touch()  # so that the next process ends this work if this one can't
                archive.unlink()
            unlist_package(place)
            place.scratch.unlink(missing_ok=True)
    except OSError as e:
        if _is_whole(place):
            return  # only what comes after failed
        raise DevelError(_failure_text(place, e)) from e


def _describe(place: DevelPlace, archive: Path) -> dict[str, object]:
    """Return what tells an archive from others: the hash that RECORD has until it lists the tree, size and time."""
    return {"archive": listed_hash(place, archive), "archive_file": _file_facts(archive)}


def _is_whole(place: DevelPlace) -> bool:
    """Return whether there is a whole tree, as far as a disk tells that has just failed."""
    try:
        archive = place.archive
        return archive is None or _is_made_from(place, _describe(place, archive))
    except OSError:
        return False


def _is_made_from(place: DevelPlace, archive: dict[str, object]) -> bool:
    """Return whether there is a whole tree from an archive, see `_describe`."""
    field = "archive" if archive["archive"] else "archive_file"
    return place.read_state().get(field) == archive[field]


def _require_same(archive: Path, made_from: dict[str, object]) -> None:
    """Raise `DevelError` when the archive was replaced while the tree was made from the one before."""
    if _file_facts(archive) != made_from["archive_file"]:
        msg = f"{archive}: was replaced while it was expanded, as by an installer. Run `rocm-sdk init` again."
        raise DevelError(msg)


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


def _expand(place: DevelPlace, archive: Path, made_from: dict[str, object]) -> None:
    """Make the tree from its archive; the caller holds the lock.

    Raises `DevelError` for an archive that is damaged or unsafe, and when files that it links to aren't installed.
    """
    try:
        _make_root(place)
        tree = DevelTree(place)
        make_folder(place.partial, modes_like(place.package))
        _fill(place, tree, archive)
        _complete(place, {**made_from, "packages": tree.packages})
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
    """Remove what an expansion that fails has made, as far as that is possible.

    RECORD goes on to list a tree that has got its name, when an interrupt comes just after that, and an older one that
    could not be removed.
    """
    shutil.rmtree(place.partial, ignore_errors=True)
    with suppress(OSError):
        if place.root.exists() and any(place.root.iterdir()):
            return
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
    except UnicodeEncodeError as e:
        msg = f"{archive}: this Python can't name its files ({e}). Set PYTHONUTF8=1, and run `rocm-sdk init` again."
        raise DevelError(msg) from e
    except Exception as e:  # each decompressor has errors of its own
        msg = f"{archive}: damaged ({e}). Reinstall: {reinstallation_hint('devel')}"
        raise DevelError(msg) from e


def _complete(place: DevelPlace, made_from: dict[str, object]) -> None:
    """Write the last files of the tree, then give it its name."""
    state = {"version": _build_info.VERSION, **made_from, "devices": {}}
    modes = modes_like(place.package)
    write_text(place.partial / "__init__.py", "", modes)
    write_text(place.partial / STATE, json.dumps(state), modes)
    this_platform().move_folder(place.partial, place.root)
