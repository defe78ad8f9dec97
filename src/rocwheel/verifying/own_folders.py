"""Files in the folders that ROCm's packages have for themselves, below ``_rocm_*``, and that no RECORD lists.

Nobody but these packages has a reason to put files there, where programs and libraries look for others.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.foundation.files.reading.regular_files import read_regular
from rocwheel.foundation.parsing.decoding import decode_json

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator, Sequence

__all__ = ["AddedFiles", "find_added"]

_OWN = "_rocm_*"
_BYTECODE = "__pycache__"
_STATE = ".expanded.json"
_NOTES = ".device_links"
"""What ``rocm_sdk`` writes in the tree of development files: what it was made from, and, in a folder, which files of
device packages it has linked there. RECORD has a line for the tree as a whole."""


class AddedFiles(msgspec.Struct, frozen=True):
    """The files that no RECORD lists."""

    extra: tuple[Path, ...] = ()
    """Those that nothing accounts for."""
    linked: dict[Path, Path] = {}
    """Those of the development tree that stand for a file of a device package, which RECORD lists."""
    unchecked: int = 0
    """Those that ``rocm_sdk`` has written itself, and links to what is gone."""


def find_added(site: Path, listed: Container[Path]) -> AddedFiles:
    """Return the files below ``site`` in the folders of ROCm's packages that are not ``listed``, without bytecode.

    In a folder that is itself listed, a tree that is expanded on demand, ``rocm_sdk`` may have files of its own. Raises
    `OSError` for a folder that can't be read.
    """
    folders = [Path(os.path.normpath(path)) for path in sorted(site.glob(_OWN))]
    found = [_find_in(folder, folders, listed) for folder in folders]
    return AddedFiles(
        tuple(path for one in found for path in one.extra),
        {path: source for one in found for path, source in one.linked.items()},
        sum(one.unchecked for one in found),
    )


def _find_in(folder: Path, folders: Sequence[Path], listed: Container[Path]) -> AddedFiles:
    files = list(_files_below(folder))
    unlisted = [path for path in files if path not in listed]
    if folder not in listed:
        return AddedFiles(tuple(unlisted))
    if len(unlisted) == len(files):  # the tree is being made: RECORD lists its files last
        return AddedFiles(unchecked=len(files))
    noted = _noted(folder)
    own = [path for path in unlisted if _is_of_rocm_sdk(path.relative_to(folder).as_posix(), noted)]
    linked = {path: source for path in own if (source := _source_of(path, folder, folders, listed))}
    return AddedFiles(tuple(path for path in unlisted if path not in own), linked, len(own) - len(linked))


def _source_of(link: Path, tree: Path, folders: Sequence[Path], listed: Container[Path]) -> Path | None:
    """Return the file of a device package that a file of the tree stands for: that of the same path in its folder."""
    places = (folder / link.relative_to(tree) for folder in folders if folder != tree)
    return next((place for place in places if place in listed), None)


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield files and links; what is no folder, or is a link to one, is yielded itself."""
    if folder.is_symlink() or not folder.is_dir():
        yield folder
        return
    for root, folders, files in os.walk(folder, onerror=_raise):
        folders[:] = sorted(name for name in folders if name != _BYTECODE)
        links = [name for name in folders if Path(root, name).is_symlink()]
        yield from (Path(root, name) for name in sorted([*files, *links]))


def _raise(error: OSError) -> None:
    raise error


def _noted(tree: Path) -> frozenset[str]:
    """Return the paths that are noted as links into device packages."""
    return frozenset(path for note in (tree / _NOTES).glob("*.json") for path in _read_note(note))


def _read_note(note: Path) -> tuple[str, ...]:
    try:
        return decode_json(read_regular(note), tuple[str, ...])
    except (OSError, msgspec.DecodeError):
        return ()


def _is_of_rocm_sdk(name: str, noted: Collection[str]) -> bool:
    is_note = name.startswith(f"{_NOTES}/") and name.endswith((".json", ".json.new"))
    return is_note or name in noted or name in {_STATE, f"{_STATE}.new"}
