"""How the cost of ``rocwheel build`` grows: one member of four sizes, and four numbers of small files; with a plot.

The members are cut from the real device code of Debian's librocsparse0. What a build of hardly anything takes is not
counted for the exponents. The floor is that of ``trials.benchmarks.build``, for the same members.
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from trials.benchmarks.build import OUTPUT, measure_build, measure_floor
from trials.benchmarks.floor import unpack_members
from trials.benchmarks.measure import CACHE, Run, machine, markdown_table
from trials.benchmarks.tree import make_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

__all__ = ["main"]

_WORK = CACHE / "bench-growth"
_PLOT = Path(__file__).parents[2] / "docs/pictures/growth.svg"
_SOURCE = "blas_lib_generic/blas/stage/lib/librocsparse.so.0.1"
_MIB = 1 << 20
_SKIPPED = 8 * _MIB + 1  # No piece begins as an ELF file or a bundle does: a build would look into it.
_FILE = 16 << 10
_SIZES = (160, 320, 640, 1240)
_COUNTS = (2_000, 4_000, 8_000, 16_000)
_HEADER = ("", "wall s", "CPU s", "CPU s of the floor", "cores busy", "resident MB")


@dataclass(frozen=True, slots=True)
class _Point:
    """A build and its floor; ``amount`` is what grows."""

    amount: int
    build: Run
    floor: Run


def main(arguments: list[str] | None = None) -> None:
    """Print both tables and their exponents, and draw the plot."""
    parser = argparse.ArgumentParser(prog="python -m trials.benchmarks.growth", description=__doc__)
    parser.add_argument("--plot", type=Path, default=_PLOT, help="the SVG file to write (default: %(default)s)")
    options = parser.parse_args(arguments or [])
    source = make_tree() / _SOURCE
    print(f"{machine()}; one round\n", flush=True)
    try:
        start = _measure(source, [_FILE])
        print(f"A build of hardly anything takes {start.build.cpu:.1f} s of CPU.\n", flush=True)
        by_bytes = [_point(source, size, [size * _MIB]) for size in _SIZES]
        _report("MiB, in one member", by_bytes, start)
        by_files = [_point(source, count, [_FILE] * count) for count in _COUNTS]
        _report("files of 16 KiB", by_files, start)
    finally:
        shutil.rmtree(_WORK, ignore_errors=True)
    _draw(options.plot, start, by_bytes, by_files)


def _point(source: Path, amount: int, sizes: Sequence[int]) -> _Point:
    measured = _measure(source, sizes)
    return _Point(amount, measured.build, measured.floor)


def _measure(source: Path, sizes: Sequence[int]) -> _Point:
    shutil.rmtree(_WORK, ignore_errors=True)
    tree, members = _WORK / "artifacts", _WORK / "members"
    _make_artifact(tree / "base_lib_generic", source, [_FILE])
    _make_artifact(tree / "blas_lib_generic", source, sizes)
    build = measure_build(tree, "--version", "7.0.0")
    unpack_members(sorted(OUTPUT.rglob("*.whl")), members)
    return _Point(0, build, measure_floor(members, "same"))


def _make_artifact(component: Path, source: Path, sizes: Sequence[int]) -> None:
    """Write data files of these sizes, cut from the source one after the other."""
    share = component / "stage/share" / component.name
    share.mkdir(parents=True)
    (component / "artifact_manifest.txt").write_text("stage\n")
    with source.open("rb") as file:
        file.seek(_SKIPPED)
        for number, size in enumerate(sizes):
            with (share / f"{number}.bin").open("wb") as copy:
                for start in range(0, size, _MIB):
                    copy.write(file.read(min(_MIB, size - start)))


def _report(what: str, points: Sequence[_Point], start: _Point) -> None:
    rows = [
        (
            f"{point.amount:,}",
            f"{point.build.wall:.1f}",
            f"{point.build.cpu:.1f}",
            f"{point.floor.cpu:.1f}",
            f"{point.build.cpu / point.build.wall:.2f}",
            f"{point.build.resident / 1e6:.0f}",
        )
        for point in points
    ]
    print(markdown_table((what, *_HEADER[1:]), rows))
    print(f"\nCPU time grows with the power {_exponent(points, start):.2f} of it.\n", flush=True)


def _exponent(points: Sequence[_Point], start: _Point) -> float:
    """Return the slope of the line through the logarithms."""
    amounts = [math.log(point.amount) for point in points]
    costs = [math.log(point.build.cpu - start.build.cpu) for point in points]
    return statistics.linear_regression(amounts, costs).slope


def _draw(path: Path, start: _Point, by_bytes: Sequence[_Point], by_files: Sequence[_Point]) -> None:
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _plot(left, "MiB, in one member", by_bytes, start)
    _plot(right, "files of 16 KiB", by_files, start)
    figure.savefig(path, metadata={"Date": None})


def _plot(axes: Axes, what: str, points: Sequence[_Point], start: _Point) -> None:
    amounts = [0, *(point.amount for point in points)]
    axes.plot(amounts, [start.build.cpu, *(point.build.cpu for point in points)], "o-", label="rocwheel build")
    axes.plot(amounts, [start.floor.cpu, *(point.floor.cpu for point in points)], "s--", label="floor")
    axes.set(xlabel=what, ylabel="CPU s", xlim=(0, None), ylim=(0, None))
    axes.legend()


if __name__ == "__main__":
    main(sys.argv[1:])
