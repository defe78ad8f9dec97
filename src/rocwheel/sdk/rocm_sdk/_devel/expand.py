"""Expands the archive of development files into the tree ``_rocm_sdk_devel``.

The tree appears whole, by a rename, or not at all. RECORD of rocm-sdk-devel lists it from the first moment, so that an
uninstall also removes what a killed process left; the next process starts over.
"""

from __future__ import annotations

import json
import shutil

from .. import _build_info
from .._packages import reinstallation_hint
from .archive import archive_members, open_archive
from .modes import make_folder, modes_like, write_text
from .place import STATE, DevelError
from .record import archive_identity, record_files, record_folders
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
            if archive is None:
                return
            identity = archive_identity(place, archive)
            if place.read_state().get("archive") != identity:
                _expand(place, archive, identity)
            _finish(place, archive)
    except OSError as e:
        archive = place.archive
        if archive and place.read_state().get("archive") == archive_identity(place, archive):
            return  # the tree is whole; only what comes after failed
        raise DevelError(_failure_text(place, e)) from e


def _finish(place: DevelPlace, archive: Path) -> None:
    """Note the files of the whole tree in RECORD, then remove the archive."""
    paths = (path for path in place.root.rglob("*") if path.is_symlink() or not path.is_dir())
    record_files(place, [path.relative_to(place.site).as_posix() for path in paths])
    archive.unlink()


def _failure_text(place: DevelPlace, error: OSError) -> str:
    where = f": {error.filename}" if error.filename else ""
    return (
        f"The ROCm development files cannot be expanded in {place.site} ({error.strerror}{where}). "
        "Run `rocm-sdk init` once as a user who may write there, with enough free space, before using them read-only."
    )


def _expand(place: DevelPlace, archive: Path, identity: str) -> None:
    """Make the tree from its archive; the caller holds the lock.

    Raises `DevelError` for an archive that is damaged or unsafe, and when files that it links to aren't installed.
    """
    record_folders(place)
    shutil.rmtree(place.partial, ignore_errors=True)
    make_folder(place.partial, modes_like(place.package))
    tree = DevelTree(place)
    try:
        _fill(tree, archive)
    except BaseException:
        shutil.rmtree(place.partial, ignore_errors=True)
        raise
    _complete(place, {"version": _build_info.VERSION, "archive": identity, "packages": tree.packages, "devices": {}})


def _fill(tree: DevelTree, archive: Path) -> None:
    try:
        with open_archive(archive) as tar:
            for member in archive_members(tar):
                tree.add(tar, member)
        tree.require_targets()
    except (DevelError, OSError):
        raise
    except Exception as e:  # each decompressor has errors of its own
        msg = f"{archive}: damaged ({e}). Reinstall: {reinstallation_hint('devel')}"
        raise DevelError(msg) from e


def _complete(place: DevelPlace, state: dict[str, object]) -> None:
    """Write the last files of the tree, then give it its name."""
    modes = modes_like(place.package)
    write_text(place.partial / "__init__.py", "", modes)
    write_text(place.partial / STATE, json.dumps(state), modes)
    if place.root.is_symlink() or place.root.exists():
        shutil.rmtree(place.root)
    place.partial.replace(place.root)
