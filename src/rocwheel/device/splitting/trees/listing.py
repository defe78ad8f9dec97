"""What is in a tree, or is one file: folders, links, and files, each once whatever the number of its names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.reading import FileRange
from rocwheel.core.workers import convert_all
from rocwheel.device.editing.tree_copy import list_tree, require_regular
from rocwheel.device.splitting.files import NamedFile
from rocwheel.targets.kernel_files.classify import classify_path

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Listing", "list_source"]


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """A tree by paths below its root, with ``/``; for a single file, the root is its folder and all else is ignored."""

    root: Path
    folders: tuple[str, ...]
    links: tuple[str, ...]
    files: tuple[NamedFile, ...]
    aliases: dict[str, str]
    """Further names (hard links) of files, each with the name under which the file is in `files`."""


def list_source(source: Path) -> Listing:
    """List the tree or file ``source``.

    Raises `InputError`, or `ProblemsError` for several, for folders that can't be listed and for pipes and devices.
    """
    if not source.is_dir():
        require_regular(source)
        file = NamedFile(source.name, FileRange.whole(source), str(source))
        return Listing(root=source.parent, folders=(), links=(), files=(file,), aliases={})
    paths = list_tree(source)
    links = [path for path in paths if path.is_symlink()]
    folders = [path for path in paths if path.is_dir() and not path.is_symlink()]
    regular = sorted({*paths} - {*links} - {*folders})
    convert_all(str(source), require_regular, regular)
    aliases = _find_aliases(source, regular)
    files = [path for path in regular if _below(source, path) not in aliases]
    return Listing(
        root=source,
        folders=tuple(_below(source, path) for path in folders),
        links=tuple(_below(source, path) for path in links),
        files=tuple(NamedFile(_below(source, path), FileRange.whole(path), str(path)) for path in files),
        aliases=aliases,
    )


def _find_aliases(source: Path, paths: Sequence[Path]) -> dict[str, str]:
    """Return the further names of files; a name for another target than the first's is a file of its own."""
    first: dict[tuple[int, int, str], str] = {}
    aliases = {}
    for path in paths:
        status = path.stat()
        if status.st_nlink > 1:
            name = _below(source, path)
            kernels = classify_path(name)
            key = (status.st_dev, status.st_ino, kernels.target if kernels else "")
            if first.setdefault(key, name) != name:
                aliases[name] = first[key]
    return aliases


def _below(root: Path, path: Path) -> str:
    return os.path.relpath(path, root)
