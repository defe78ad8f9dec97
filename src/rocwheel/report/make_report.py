"""The facts of a report, read from what users name."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.distributions.zip.unpacked import UnpackedMembers
from rocwheel.foundation.progress import SILENT, Progress
from rocwheel.foundation.workers import open_workers
from rocwheel.installed.reading.read_file import begin_large
from rocwheel.installed.reading.wheel_reading import WheelReading
from rocwheel.report.against import compare_with
from rocwheel.report.duplicates import find_duplicates
from rocwheel.report.matrix import make_matrix
from rocwheel.report.measure_code import MeasuredCode, measure_code
from rocwheel.report.read_files import read_files
from rocwheel.report.read_graph import read_graph
from rocwheel.report.savings import find_savings
from rocwheel.report.values import Kind, Report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.diffing.values import Item, Unpack
    from rocwheel.foundation.errors import RocwheelError
    from rocwheel.report.read_files import ReadFiles
    from rocwheel.report.read_inputs import Holding

__all__ = ["make_report"]

_KEPT = 256
"""How many members at most stay unpacked from one step for the next: each is an open file."""


def make_report(
    paths: Sequence[Path],
    *,
    unread: list[RocwheelError],
    left_out: Path | None = None,
    against: Path | None = None,
    estimate: bool = False,
    progress: Progress = SILENT,
) -> Report:
    """Return the report on everything at ``paths``; what can't be read of it is also appended to ``unread``.

    The file ``left_out``, which the report is written to, does not count. ``against`` is an older state to compare
    with. With ``estimate``, what could be saved is reckoned from samples. Raises `InputError` for a path that is
    nothing to report on, and `ProblemsError` for several.
    """
    with ExitStack() as stack:
        unpacked = stack.enter_context(closing(UnpackedMembers(most=_KEPT)))
        unpack = unpacked.open_content
        read = read_files(paths, stack, progress, unread=unread, left_out=left_out, unpack=unpack)
        compared = None
        if against:
            old = read_files([against], stack, progress, unread=unread, left_out=left_out)
            compared = compare_with(str(against), old, read)
        duplicates = find_duplicates(_distinct(read), progress)
        measured = _measure(read, progress, unpack, estimate=estimate)
        graph = read_graph(_paths_to_audit(paths, read.holdings), progress, _reading(unpacked))
    matrix = make_matrix(read.packages, read.files)
    return Report(
        paths=tuple(map(str, paths)),
        totals=read.totals,
        packages=read.packages,
        files=read.files,
        matrix=matrix,
        duplicates=duplicates,
        graph=graph,
        savings=find_savings(read.files, measured, matrix.gpus, is_estimated=estimate),
        against=compared,
    )


def _reading(unpacked: UnpackedMembers) -> WheelReading:
    return WheelReading(unpack=unpacked.open, digest=unpacked.digest, headers_only=True)


def _distinct(read: ReadFiles) -> Iterator[tuple[int, Item]]:
    """Yield each file with the number of its package, without further names of one that came before."""
    for item, file in zip(read.items, read.files, strict=True):
        if not file.same_as:
            yield file.package, item


def _measure(read: ReadFiles, progress: Progress, unpack: Unpack, *, estimate: bool) -> dict[int, MeasuredCode]:
    """Return what was measured of files with bundles, by their place."""
    items = read.items
    chosen = [place for place, file in enumerate(read.files) if file.parts]
    step = begin_large(progress, "measuring what could be saved", sum(items[place].size for place in chosen))
    found = {}
    with open_workers() as executor:
        for place in chosen:
            if (code := measure_code(items[place], executor, estimate=estimate, unpack=unpack)) is not None:
                found[place] = code
            step.advance(items[place].size)
    progress.end()
    return found


def _paths_to_audit(paths: Sequence[Path], holdings: Sequence[Holding]) -> list[Path]:
    """Return the wheels, and the folders that hold none: the audit looks for wheels in them by other rules."""
    wheels = [Path(holding.source) for holding in holdings if holding.kind is Kind.WHEEL]
    packed = {Kind.WHEEL, Kind.SDIST, Kind.UNREADABLE}
    others = {path for path in paths if path.is_dir() and not _is_packed(path, holdings, packed)}
    return [*wheels, *sorted(others)]


def _is_packed(path: Path, holdings: Sequence[Holding], packed: set[Kind]) -> bool:
    return any(holding.kind in packed and Path(holding.source).is_relative_to(path) for holding in holdings)
