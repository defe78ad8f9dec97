"""Which library has code for which GPU: of its own, generic, or none."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.binary.code_objects.target_id import TargetId, parse_target_id
from rocwheel.foundation.errors import InputError
from rocwheel.report.values import HOST, Code, Matrix, MatrixRow
from rocwheel.targets.catalog.catalog import SPIRV, Generic, load_catalog
from rocwheel.targets.compatibility import Fit, covers, fit
from rocwheel.targets.kernel_files.names import is_kernel_file, without_targets

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.report.values import FileFacts, PackageFacts

__all__ = ["code_for", "make_matrix"]


def make_matrix(packages: Sequence[PackageFacts], files: Iterable[FileFacts]) -> Matrix:
    """Return which library has code for which GPU, libraries by their paths, GPUs in the order of the catalogue."""
    targets: dict[str, set[str]] = defaultdict(set)
    holders: dict[str, set[str]] = defaultdict(set)
    for file in files:
        if found := {part.target for part in file.parts} - {HOST}:
            targets[_library_of(file.path)] |= found
            holders[_library_of(file.path)].add(packages[file.package].label)
    codes = {library: _parsed(found) for library, found in targets.items()}
    gpus = _gpus({code.processor for found in codes.values() for code in found})
    rows = (
        MatrixRow(
            library,
            tuple(sorted(holders[library])),
            tuple(sorted(targets[library])),
            tuple(code_for(codes[library], TargetId(gpu)) for gpu in gpus),
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


def _library_of(path: str) -> str:
    if path.endswith(".kpack"):
        return without_targets(path)
    return posixpath.dirname(without_targets(path)) + "/" if is_kernel_file(path) else path


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
