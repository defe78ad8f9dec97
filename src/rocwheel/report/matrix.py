"""Which library has code for which GPU: of its own, generic, or none."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.binary.code_objects.target_id import TargetId, parse_target_id
from rocwheel.foundation.errors import InputError
from rocwheel.report.values.files import HOST
from rocwheel.report.values.matrix import Code, Matrix, MatrixRow
from rocwheel.targets.catalog.catalog import SPIRV, Generic, load_catalog
from rocwheel.targets.compatibility import Fit, covers, fit
from rocwheel.targets.kernel_files.names import library_of
from rocwheel.targets.library_code import without_lost

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.report.values.files import FileFacts, PackageFacts
    from rocwheel.report.values.graph import LostCode

__all__ = ["code_for", "make_matrix"]

_SHARED = -1


def make_matrix(packages: Sequence[PackageFacts], files: Iterable[FileFacts], lost: Iterable[LostCode] = ()) -> Matrix:
    """Return which library has code for which GPU, by path and package, GPUs in the order of the catalogue.

    Code that is ``lost`` is none.
    """
    targets: dict[tuple[str, int], set[str]] = defaultdict(set)
    holders: dict[tuple[str, int], set[str]] = defaultdict(set)
    for file in files:
        if found := {part.target for part in file.parts} - {HOST}:
            targets[_key_of(file)] |= found
            holders[_key_of(file)].add(packages[file.package].label)
    codes = {library: _parsed(found) for library, found in targets.items()}
    gone: dict[str, list[TargetId]] = defaultdict(list)
    for one in lost:
        gone[one.path] += _parsed(one.targets)
    usable = {library: list(without_lost(found, gone[library[0]])) for library, found in codes.items()}
    gpus = _gpus({code.processor for found in codes.values() for code in found})
    rows = (
        MatrixRow(
            library[0],
            tuple(sorted(holders[library])),
            tuple(sorted(targets[library])),
            tuple(code_for(usable[library], TargetId(gpu)) for gpu in gpus),
        )
        for library in sorted(targets)
    )
    return Matrix(gpus, tuple(rows))


def code_for(codes: Sequence[TargetId], gpu: TargetId) -> Code:
    """Return what code of these targets is for a GPU whose features may have any setting."""
    own = [code for code in codes if code.processor == gpu.processor]
    if own:
        return Code.EXACT if covers(own, gpu) else Code.PARTLY
    fits = {fit(code, gpu) for code in codes}
    if Fit.GENERIC in fits:
        return Code.GENERIC
    return Code.SPIRV if Fit.SPIRV in fits else Code.MISSING


def _key_of(file: FileFacts) -> tuple[str, int]:
    """Return the library of a file, and its package; several packages have parts of one library of kernels."""
    library = library_of(file.path)
    return library, file.package if library == file.path else _SHARED


def _parsed(targets: Iterable[str]) -> list[TargetId]:
    return [code for text in sorted(targets) for code in _parse(text)]


def _parse(text: str) -> list[TargetId]:
    """Return a target, or nothing for an image that is for something else than AMD's GPUs."""
    try:
        return [parse_target_id(text)]
    except InputError:
        return []


def _gpus(processors: set[str]) -> tuple[str, ...]:
    catalog = load_catalog()
    rows = {name: catalog.processors.get(name) for name in processors}
    members = {member for row in rows.values() if isinstance(row, Generic) for member in row.members}
    single = {name for name, row in rows.items() if not isinstance(row, Generic) and name != SPIRV} | members
    order = {name: place for place, name in enumerate(catalog.processors)}
    return tuple(sorted(single, key=lambda name: (order.get(name, len(order)), name)))
