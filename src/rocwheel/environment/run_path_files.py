"""Reads the run paths of files, and writes copies with new run paths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import ElfKind, read_elf
from rocwheel.binary.kind import is_elf64
from rocwheel.binary.runpath import plan_runpath
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress, tracked
from rocwheel.core.reading import FileRange
from rocwheel.core.workers import iter_batches, map_collecting, map_skipping, open_workers, raise_all
from rocwheel.core.writing import SYNCING, AtomicFile, atomic_files, safe_mode
from rocwheel.wheels.binaries import Binary, find_all_binaries, tracked_binaries
from rocwheel.wheels.content import PatchedContent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor

    from rocwheel.core.errors import RocwheelError
    from rocwheel.environment.run_path_choice import SetRunpath


_UNUSABLE = "files that can't be used"
_LOADED = {ElfKind.EXECUTABLE, ElfKind.SHARED_OBJECT}
_BATCH, _LEAST = 8 << 20, 128 << 10
"""The approximate size of copies that are written together, and the size that is added for each file, in bytes."""


class FileRunPath(msgspec.Struct, frozen=True):
    """The folders in which the loader searches for a file's libraries."""

    file: str
    kind: ElfKind
    soname: str | None
    tag: RunpathTag | None
    """The tag of the effective run path."""
    run_path: str | None
    needed: tuple[str, ...]


class ChangedFile(msgspec.Struct, frozen=True):
    """A file that was written with a new run path."""

    file: str
    written: str
    size: int
    is_changed: bool
    """False if the run path was already correct and the file was copied unchanged."""


def read_run_paths(
    paths: Sequence[Path], unread: list[RocwheelError], progress: Progress = SILENT
) -> tuple[FileRunPath, ...]:
    """Read the run path of each ELF file in ``paths``, which are files, wheels, and folders with their subfolders.

    In folders and wheels, other binaries are skipped, and so are ELF files that the loader doesn't load. Errors about
    unreadable files are appended to ``unread``. If there are no other files, the errors are raised (as a
    `ProblemsError` if there are several). Raises `InputError` if there is no ELF file.
    """
    binaries = tracked_binaries(list(find_all_binaries(paths)), "reading", progress)
    files = tuple(file for file in map_skipping(_UNUSABLE, _read, binaries, unread) if file)
    if not files:
        raise_all(_UNUSABLE, unread)
        raise InputError(
            ", ".join(map(str, paths)),
            "no ELF files",
            expected="ELF files, or wheels or folders with ELF files",
        )
    return files


def write_run_paths(
    paths: Sequence[Path], edit: SetRunpath, dest_dir: Path, *, remedy: str = "", progress: Progress = SILENT
) -> tuple[ChangedFile, ...]:
    """Write a copy of each file with a new run path to ``dest_dir``, under the same name.

    An empty run path removes the old one.

    The copies get safe permissions (`safe_mode`). Nothing is written unless every file can be changed. Raises
    `ProblemsError` with the files that can't be changed, and `WorkError` if a copy can't be written. Raises
    `InputError` with ``remedy`` if a copy would overwrite its source file.
    """
    _check_names(paths)
    _check_targets(paths, dest_dir, remedy)
    patches = map_collecting(_UNUSABLE, lambda path: _plan(path, edit), paths)
    batches = list(iter_batches(patches, lambda patch: _LEAST + patch.size, _BATCH))
    sizes = [sum(patch.size for patch in batch) for batch in batches]
    with open_workers(SYNCING) as executor:
        written = (_write_batch(batch, dest_dir, executor) for batch in batches)
        return tuple(file for files in tracked(progress, "writing", written, sizes) for file in files)


def _check_names(paths: Sequence[Path]) -> None:
    """Reject two files with the same destination."""
    by_name: dict[str, Path] = {}
    for path in paths:
        other = by_name.setdefault(path.name, path)
        if other is not path:
            raise InputError(path, f"has the same name as {other}", expected="a unique name for each copy")


def _check_targets(paths: Sequence[Path], dest_dir: Path, remedy: str) -> None:
    """Reject a copy that would overwrite its source file."""
    for path in paths:
        target = dest_dir / path.name
        if target.exists() and target.samefile(path):
            raise InputError(path, "would be overwritten by its own copy", remedy=remedy)


def _read(found: Binary | InputError) -> FileRunPath | None:
    """Return a binary's run path, or `None` for a binary in a folder or wheel that the loader doesn't load."""
    if isinstance(found, InputError):
        raise found
    with found.view() as data:
        if found.place and not is_elf64(data):
            return None
        elf = read_elf(data, name=found.name)
    if found.place and elf.kind not in _LOADED:
        return None
    return FileRunPath(found.name, elf.kind, elf.soname, elf.run_path_tag, elf.run_path, elf.needed)


def _plan(path: Path, edit: SetRunpath) -> PatchedContent:
    source = FileRange.whole(path)
    with source.view() as data:
        return PatchedContent(source, plan_runpath(data, edit.value, edit.tag, name=str(path)))


def _write_batch(batch: Sequence[PatchedContent], dest_dir: Path, executor: Executor) -> list[ChangedFile]:
    with atomic_files(executor) as files:
        for content in batch:
            path = Path(content.source.path)
            # The copy belongs to the user who creates it, so it must not pass on that user's rights.
            files.append(AtomicFile(dest_dir / path.name, mode=safe_mode(path.stat().st_mode)))
            with content.source.view() as data:
                for piece in content.patch.pieces(data):
                    files[-1].write(piece)
        pairs = zip(batch, files, strict=True)
        return [ChangedFile(of.source.path, str(at.path), of.size, not of.patch.is_identity) for of, at in pairs]
