"""Run paths of files on disk: read them, and write changed copies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import ElfKind, read_elf
from rocwheel.binary.runpath.edit import plan_runpath
from rocwheel.distributions.content.content import PatchedContent
from rocwheel.foundation.collecting import convert_all
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.atomic_file import atomic_file
from rocwheel.foundation.files.file_range import FileRange
from rocwheel.foundation.files.file_view import iter_pieces
from rocwheel.foundation.files.modes import safe_mode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.linking.run_path_choice import SetRunpath

__all__ = ["ChangedFile", "FileRunPath", "read_run_paths", "write_run_paths"]

_UNUSABLE = "files that can't be used"


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


def read_run_paths(paths: Sequence[Path]) -> tuple[FileRunPath, ...]:
    """Read the run path of each file; raise `ProblemsError` that names every file that can't be read."""
    return tuple(convert_all(_UNUSABLE, _read, paths))


def write_run_paths(
    paths: Sequence[Path], edit: SetRunpath, dest_dir: Path, *, remedy: str = ""
) -> tuple[ChangedFile, ...]:
    """Write a copy of each file with another run path (none when it is empty) to ``dest_dir``, under its name.

    The copies have the permissions of the files as far as they are safe (`safe_mode`). Nothing is written unless every
    file can be changed. Raises `ProblemsError` that names the files that can't be, `WorkError` when
    a copy can't be written, and `InputError` with ``remedy`` when a copy would overwrite its own file.
    """
    _check_names(paths)
    _check_targets(paths, dest_dir, remedy)
    patches = convert_all(_UNUSABLE, lambda path: _plan(path, edit), paths)
    return tuple(_write(patch, dest_dir / Path(patch.source.path).name) for patch in patches)


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


def _read(path: Path) -> FileRunPath:
    with FileRange.whole(path).view() as data:
        elf = read_elf(data, name=str(path))
    return FileRunPath(str(path), elf.kind, elf.soname, elf.run_path_tag, elf.run_path, elf.needed)


def _plan(path: Path, edit: SetRunpath) -> PatchedContent:
    source = FileRange.whole(path)
    with source.view() as data:
        return PatchedContent(source, plan_runpath(data, edit.value, edit.tag, name=str(path)))


def _write(content: PatchedContent, target: Path) -> ChangedFile:
    source, patch = content.source, content.patch
    # The copy's owner is whoever makes it, whose rights it mustn't give away.
    mode = safe_mode(Path(source.path).stat().st_mode)
    with source.view() as data, atomic_file(target, mode=mode) as file:
        for buffer in patch.apply(data):
            for piece in iter_pieces(buffer):
                file.write(piece)
    return ChangedFile(source.path, str(target), patch.size, not patch.is_identity)
