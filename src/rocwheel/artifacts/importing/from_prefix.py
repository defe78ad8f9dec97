"""Importing an install prefix such as ``/opt/rocm`` as artifacts."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.artifacts.importing.choose_artifact import ImportRules, Origin
from rocwheel.artifacts.importing.importer import Importer, SourceMember, importing
from rocwheel.artifacts.importing.prefix_release import check_one_release, library_signs, stated_signs
from rocwheel.artifacts.model.artifact import PERMISSIONS, FileKind
from rocwheel.foundation.counting import count, first_of
from rocwheel.foundation.errors import InputError, read_error
from rocwheel.foundation.files.regular_files import open_unchanged
from rocwheel.foundation.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.artifacts.importing.report import ImportReport
    from rocwheel.artifacts.importing.table import ImportTable

__all__ = ["import_prefix"]


def import_prefix(
    prefix: Path, dest: Path, table: ImportTable, *, strict: bool = False, progress: Progress = SILENT
) -> ImportReport:
    """Turn a prefix into artifacts in the folder ``dest``, which must be new or empty.

    Files that no rule matches go into the table's catch-all artifact; with ``strict`` they are errors.
    Raises `InputError` when the prefix can't be read, has nothing of ROCm or mixes releases; `ProblemsError` for
    symlinks that leave it.
    """
    root = prefix.resolve()
    if not root.is_dir():
        raise InputError(prefix, "is not a folder", expected="an install prefix such as /opt/rocm")
    if dest.resolve().is_relative_to(root):
        raise InputError(dest, f"is inside the prefix {prefix}", remedy="Choose a folder outside.")
    entries = list(_walk(root))
    _check_is_rocm(prefix, [os.path.relpath(entry.path, root) for entry in entries], ImportRules(table))
    files = [os.path.relpath(entry.path, root) for entry in entries if not entry.is_symlink()]
    version = _sdk_version(prefix, root, files, table)
    with importing(table, dest, strict=strict) as importer:
        importer.version = version
        progress.begin(f"copying {prefix}", sum(entry.stat(follow_symlinks=False).st_size for entry in entries))
        for entry in entries:
            _add(importer, root, entry)
            progress.advance(entry.stat(follow_symlinks=False).st_size)
        progress.end()
        return importer.finish(str(prefix))


def _walk(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    """List files and links below a folder in a fixed order, without following links."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as e:
        raise read_error(folder, e) from e
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path)
        else:
            yield entry


def _add(importer: Importer, root: Path, entry: os.DirEntry[str]) -> None:
    origin = Origin(os.path.relpath(entry.path, root), str(root))
    if entry.is_symlink():
        link, is_outside = _read_link(root, entry.path)
        importer.add(SourceMember(origin, FileKind.SYMLINK, link=link, is_outside=is_outside))
        return
    mode = entry.stat(follow_symlinks=False).st_mode
    if not stat.S_ISREG(mode):
        raise InputError(entry.path, "is a device node, socket or pipe", expected="files, links and folders")
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_unchanged(Path(entry.path)))
        except OSError as e:
            raise read_error(entry.path, e) from e
        importer.add(SourceMember(origin, FileKind.FILE, mode=mode & PERMISSIONS, content=file))


def _read_link(root: Path, path: str) -> tuple[str, bool]:
    """Return a link's text, counted from the prefix when absolute, and whether it is absolute and leads elsewhere.

    The prefix may have several names, such as ``/opt/rocm`` for ``/opt/rocm-6.2.0``.
    """
    raw = Path(path).readlink()
    if not raw.is_absolute():
        return str(raw), False
    for folder in (*reversed(raw.parents), raw):
        if folder.resolve() == root:
            return f"/{raw.relative_to(folder)}", False
    return str(raw), True


def _sdk_version(prefix: Path, root: Path, files: Sequence[str], table: ImportTable) -> str:
    """Return the version that the prefix states, or that all its libraries name; empty when it is not known."""
    stated, libraries = stated_signs(root, table.version_from), library_signs(files)
    check_one_release(prefix, stated, libraries)
    named = {sign.release for sign in libraries}
    return stated[0].release if stated else named.pop() if len(named) == 1 else ""


def _check_is_rocm(prefix: Path, paths: Sequence[str], rules: ImportRules) -> None:
    """Raise `InputError`, before anything is copied, for a folder without a file that ROCm alone has."""
    if any(map(rules.tells, paths)):
        return
    below = sorted({path.partition("/")[0] for path in paths if rules.tells(path.partition("/")[2])})
    found = f"holds no file that tells it is ROCm, among {count(len(paths), 'file')}"
    inside = f"Give the folder itself: {first_of([str(prefix / name) for name in below])}."
    raise InputError(prefix, found, remedy=inside if below else "Check the path, or the --table option.")
