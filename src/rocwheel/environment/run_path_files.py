"""Run paths of given files: read, and written into copies of them."""

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
"""Bytes of copies that are written to disk together, or a little more, and what a file counts at least there."""


class FileRunPath(msgspec.Struct, frozen=True):
    """Where the loader searches for what one file needs."""

    file: str
    kind: ElfKind
    soname: str | None
    tag: RunpathTag | None
    """The tag of the run path that counts."""
    run_path: str | None
    needed: tuple[str, ...]


class ChangedFile(msgspec.Struct, frozen=True):
    """A file that was written with a new run path."""

    file: str
    written: str
    size: int
    is_changed: bool
    """False when the run path was right already, and the file was copied as it is."""


def read_run_paths(
    paths: Sequence[Path], unread: list[RocwheelError], progress: Progress = SILENT
) -> tuple[FileRunPath, ...]:
    """Read the run path of each ELF file among ``paths``: files, folders with all that is below, and wheels.

    In folders and wheels, other binaries are passed over, as are ELF files of other kinds than the loader's. The errors
    of what can't be read are appended to ``unread``, and raised where nothing else is there (`ProblemsError` for
    several). Raises `InputError` when there is no ELF file.
    """
    binaries = tracked_binaries(list(find_all_binaries(paths)), "reading", progress)
    files = tuple(file for file in map_skipping(_UNUSABLE, _read, binaries, unread) if file)
    if not files:
        raise_all(_UNUSABLE, unread)
        raise InputError(", ".join(map(str, paths)), "no ELF file", expected="ELF files, or wheels or folders of them")
    return files


def write_run_paths(
    paths: Sequence[Path], edit: SetRunpath, dest_dir: Path, *, remedy: str = "", progress: Progress = SILENT
) -> tuple[ChangedFile, ...]:
    """Write a copy of each file with another run path (none when it is empty) to ``dest_dir``, under its name.

    The copies have the permissions of the files as far as they are safe (`safe_mode`). Nothing is written unless every
    file can be changed. Raises `ProblemsError` that names the files that can't be, `WorkError` when
    a copy can't be written, and `InputError` with ``remedy`` when a copy would overwrite its own file.
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
    """Refuse two files for one place."""
    by_name: dict[str, Path] = {}
    for path in paths:
        other = by_name.setdefault(path.name, path)
        if other is not path:
            raise InputError(path, f"the same name as {other}", expected="a name of its own for each copy")


def _check_targets(paths: Sequence[Path], dest_dir: Path, remedy: str) -> None:
    """Refuse to write a copy over the file that it is made from."""
    for path in paths:
        target = dest_dir / path.name
        if target.exists() and target.samefile(path):
            raise InputError(path, "would be overwritten by its own copy", remedy=remedy)


def _read(found: Binary | InputError) -> FileRunPath | None:
    """Return the run path of a binary; none for one in a folder or a wheel that the loader has nothing to do with."""
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
            # The copy's owner is whoever makes it, whose rights it mustn't give away.
            files.append(AtomicFile(dest_dir / path.name, mode=safe_mode(path.stat().st_mode)))
            with content.source.view() as data:
                for piece in content.patch.pieces(data):
                    files[-1].write(piece)
        pairs = zip(batch, files, strict=True)
        return [ChangedFile(of.source.path, str(at.path), of.size, not of.patch.is_identity) for of, at in pairs]
