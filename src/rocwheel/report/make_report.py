"""The facts of a report, read from what users name."""

from __future__ import annotations

from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.distributions.zip.unpacked import UnpackedMembers
from rocwheel.foundation.errors import RocwheelError, raise_work
from rocwheel.foundation.progress import SILENT, Progress, step
from rocwheel.foundation.workers import open_workers
from rocwheel.installed.reading.wheel_reading import WheelReading
from rocwheel.report.against import compare_with
from rocwheel.report.duplicates import find_duplicates
from rocwheel.report.matrix import make_matrix
from rocwheel.report.measure_files import measure_files
from rocwheel.report.read_files import read_files
from rocwheel.report.read_graph import read_graph
from rocwheel.report.savings import find_savings
from rocwheel.report.values.files import Kind
from rocwheel.report.values.growth import Against
from rocwheel.report.values.report import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rocwheel.diffing.values import Item
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
    with; one that can't be read is reported as that. With ``estimate``, what could be saved is reckoned from samples.
    Raises what `read_files` raises.
    """
    with ExitStack() as stack:
        unpacked = stack.enter_context(closing(UnpackedMembers(most=_KEPT)))
        unpack = unpacked.open_content
        read_side = partial(read_files, stack=stack, progress=progress, unread=unread, left_out=left_out)
        read = read_side(paths, unpack=unpack)
        compared = _compare(against, read_side, read, unread) if against else None
        duplicates = find_duplicates(_distinct(read), progress)
        # Measuring waits for codecs and the graph for nothing else, so two cores are busy with both at once.
        with open_workers(1) as beside:
            audited = _paths_to_audit(paths, read.holdings)
            reading = beside.submit(read_graph, audited, SILENT, _reading(unpacked))
            measured = measure_files(read.items, read.files, progress, unpack, estimate=estimate)
            with step(progress, "finding what loads what"):
                graph = reading.result()
    matrix, packed = make_matrix(read.packages, read.files, graph.lost), read.totals.packed
    return Report(
        paths=tuple(map(str, paths)),
        totals=read.totals,
        packages=read.packages,
        files=read.files,
        matrix=matrix,
        duplicates=duplicates,
        graph=graph,
        savings=find_savings(read.files, measured, matrix.gpus, packed=packed, is_estimated=estimate),
        against=compared,
    )


def _compare(
    against: Path, read_side: Callable[[Sequence[Path]], ReadFiles], new: ReadFiles, unread: list[RocwheelError]
) -> Against:
    """Return what differs from the older state, or why that can't be read; raise `WorkError` for the system's fault."""
    try:
        old = read_side([against])
    except RocwheelError as e:
        raise_work(e)
        unread.append(e)
        return Against(str(against), problem=str(e))
    return compare_with(str(against), old, new)


def _reading(unpacked: UnpackedMembers) -> WheelReading:
    return WheelReading(unpack=unpacked.open, digest=unpacked.digest, headers_only=True)


def _distinct(read: ReadFiles) -> Iterator[tuple[int, Item]]:
    """Yield each file with the number of its package, without further names of one that came before."""
    for item, file in zip(read.items, read.files, strict=True):
        if not file.same_as:
            yield file.package, item


def _paths_to_audit(paths: Sequence[Path], holdings: Sequence[Holding]) -> list[Path]:
    """Return the wheels, and the folders that hold none: the audit looks for wheels in them by other rules."""
    wheels = [Path(holding.source) for holding in holdings if holding.kind is Kind.WHEEL]
    packed = {Kind.WHEEL, Kind.SDIST, Kind.UNREADABLE}
    others = {path for path in paths if path.is_dir() and not _is_packed(path, holdings, packed)}
    return [*wheels, *sorted(others)]


def _is_packed(path: Path, holdings: Sequence[Holding], packed: set[Kind]) -> bool:
    return any(holding.kind in packed and Path(holding.source).is_relative_to(path) for holding in holdings)
