"""Split libraries that pruning would leave without any code for one of their units, in a folder or wheel."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rocwheel.binary.code_objects import Place, parse_target_id
from rocwheel.core.errors import InputError
from rocwheel.device.reading.kpack.code import open_kpack_code
from rocwheel.device.reading.kpack.given_archives import GivenArchives, is_named_archive
from rocwheel.wheels.binaries import Binary, find_binaries, read_found

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.core.reading import Data
    from rocwheel.device.editing.prune import Prune
    from rocwheel.device.reading.kpack.code import CodeUnit

__all__ = ["find_emptied_libraries"]


def find_emptied_libraries(path: Path, edit: Prune) -> Iterator[InputError]:
    """Yield an error for each split library in the folder or wheel of which ``edit`` would leave a unit without code.

    It is that of a fat library in the same case. Code in archives elsewhere doesn't count, since nothing happens to it.
    What can't be read is left to those who edit it.
    """
    binaries = list(find_binaries(path))
    if edit.allow_empty or not any(isinstance(found, Binary) and is_named_archive(found) for found in binaries):
        return
    find = partial(_find_emptied, archives=GivenArchives(binaries), edit=edit)
    for _, result in read_found(binaries, find):
        if not isinstance(result, InputError):
            yield from result


def _find_emptied(data: Data, found: Binary, *, archives: GivenArchives, edit: Prune) -> tuple[InputError, ...]:
    """Return the error of a library, if any: that of the first unit without code."""
    if is_named_archive(found):
        return ()
    with open_kpack_code(data, name=found.name, folder=None, beside=archives.beside(found)) as kpack:
        units = kpack.units if kpack is not None and kpack.is_library else ()
        return tuple(error for unit in units if (error := _emptied(unit, found.name, edit)))[:1]


def _emptied(unit: CodeUnit, name: str, edit: Prune) -> InputError | None:
    targets = sorted((parse_target_id(target, source=name) for target in unit.targets), key=str)
    if not targets or edit.needed([targets]):
        return None
    return edit.nothing_left(targets, Place(name, unit.wrapper.offset if unit.wrapper else 0))
