"""A copy of a folder or of an archive whose code is offered to more GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import parse_target_id
from rocwheel.binary.kpack.archive import read_archive
from rocwheel.core.errors import InputError
from rocwheel.core.reading import FileRange
from rocwheel.core.writing import atomic_file, new_folder, safe_mode
from rocwheel.device.editing.tree_copy import copy_file, list_tree, require_regular
from rocwheel.device.retargeting.archive import retarget_archive
from rocwheel.device.retargeting.tree import RetargetOrder, retarget_files
from rocwheel.targets.kernel_files.names import targets_in_path, without_targets
from rocwheel.wheels.binaries import is_wheel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.device.retargeting.relabelled import RetargetedTree
    from rocwheel.targets.retarget_pairs import TargetPair

__all__ = ["NewFile", "TreeRetargeting", "copy_archive", "copy_tree"]


class NewFile(msgspec.Struct, frozen=True):
    """A file for a target that had none: its path, the path of the file it was made from, and the target."""

    path: str
    origin: str
    target: str


class TreeRetargeting(msgspec.Struct, frozen=True):
    """What became of a folder: edited and new files, why other code is not offered, and how many files are the same.

    ``warnings`` say which libraries could not be trimmed, and why.
    """

    edited: tuple[str, ...]
    added: tuple[NewFile, ...]
    refused: tuple[str, ...]
    copied: int
    warnings: tuple[str, ...] = ()


def copy_tree(source: Path, output: Path, order: RetargetOrder) -> TreeRetargeting:
    """Copy the folder ``source`` to ``output``, with its code offered to more GPUs as `retarget_files` does it.

    Wheels in it stay as they are. ``output`` must be new or empty, and not in ``source``; it appears when it
    is whole.
    Raises `InputError` for what can't be read and as `retarget_files` does, and `WorkError` when writing fails.
    """
    with new_folder(output, source) as made:
        paths = list_tree(source)
        files = {}
        for path in paths:
            place = path.relative_to(source)
            _copy(path, made / place)
            if not path.is_symlink() and path.is_file() and not is_wheel(path):
                files[place.as_posix()] = FileRange.whole(path)
        taken = {path.relative_to(source).as_posix() for path in paths}
        result = retarget_files(files, order, made.parent / "retargeted", taken=taken)
        _move(result, source, made)
        wheels = [path for path in paths if path.is_file() and is_wheel(path)]
        return _report(result, [path.relative_to(source).as_posix() for path in wheels], len(files))


def _copy(path: Path, made: Path) -> None:
    if path.is_symlink():
        made.symlink_to(path.readlink())
    elif path.is_dir():
        made.mkdir(parents=True, exist_ok=True)
    else:
        require_regular(path)
        copy_file(path, made)


def _move(result: RetargetedTree, source: Path, made: Path) -> None:
    moves = [(path, path, content) for path, content in result.edited.items()]
    moves += [(file.path, file.origin, file.content) for file in result.added]
    for path, origin, content in moves:
        new = made / path
        new.parent.mkdir(parents=True, exist_ok=True)
        Path(content.path).replace(new)
        new.chmod(safe_mode((source / origin).stat().st_mode))


def _report(result: RetargetedTree, wheels: Sequence[str], files: int) -> TreeRetargeting:
    refused = [*map(str, result.refused), *(f"{path}: is a wheel, to be retargeted by itself" for path in wheels)]
    added = tuple(NewFile(file.path, file.origin, file.agent) for file in result.added)
    copied = files - len(result.edited) + len(wheels)
    return TreeRetargeting(tuple(result.edited), added, tuple(refused), copied, result.warnings)


def copy_archive(source: Path, output: Path, pairs: Sequence[TargetPair]) -> None:
    """Write the kpack archive ``source`` for another GPU to ``output``, which takes its name when it is whole.

    Raises `InputError` unless there is one pair, whose code is in the archive, for an ``output`` that is named for
    other GPUs, and as `retarget_archive` does.
    """
    if len(pairs) != 1:
        agents = ", ".join(str(pair.agent) for pair in pairs)
        remedy = "Name one target, or the folder that the archive is in."
        raise InputError(source, f"can't be for {agents} at once", expected="an archive for each target", remedy=remedy)
    [pair] = pairs
    _require_name(output, pair.agent.processor)
    with FileRange.whole(source).view() as data:
        targets = read_archive(data, name=str(source)).targets
        if not any(pair.agent_of(parse_target_id(target, source=str(source))) for target in targets):
            found = f"no code for {pair.code} to offer to other GPUs"
            raise InputError(source, found, expected=f"one of its targets {', '.join(targets)}")
        with atomic_file(output) as file:
            retarget_archive(data, file, pair, name=str(source))


def _require_name(output: Path, processor: str) -> None:
    """Refuse a name with another target: runtimes open an archive for the GPU in its name, and look for that in it."""
    named = [target.processor for target in targets_in_path(output.name)]
    if named and processor not in named:
        found = f"is named for {', '.join(named)}, so no runtime would find the code for {processor} in it"
        remedy = f"Call it {without_targets(output.name).replace('*', processor)}."
        raise InputError(output, found, expected=f"a name with {processor}", remedy=remedy)
