"""The cost of the worst inputs: each kind in four sizes, with CPU time, memory, and the power that time grows with."""

from __future__ import annotations

import argparse
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trials.benchmarks.cases.worst import CASES
from trials.benchmarks.commands import power
from trials.benchmarks.measure import CACHE, Run, markdown_table, run_measured

if TYPE_CHECKING:
    from trials.benchmarks.cases.worst import Worst

__all__ = ["main"]

_PAGE = Path(__file__).parents[2] / "docs/benchmarks.md"
_BEGIN, _END = "<!-- worst: make bench writes this table -->\n", "<!-- worst end -->"
_HEADER = ("command", "input", "input KB", "CPU s", "memory MB", "power")
_MOST_CPU = 100
"""Seconds of CPU time, after which a command is killed."""


def main(arguments: list[str] | None = None) -> None:
    """Print the table; with ``--write``, also into the page. ``arguments`` are those of this benchmark alone."""
    parser = argparse.ArgumentParser(prog="python -m trials.benchmarks.worst", description=__doc__)
    parser.add_argument("names", nargs="*", help="measure the inputs whose names contain one of these; default: all")
    parser.add_argument("--write", action="store_true", help=f"write the table into {_PAGE.name}")
    options = parser.parse_args(arguments or [])
    cases = [case for case in CASES if not options.names or any(name in case.what for name in options.names)]
    print(markdown_table(_HEADER, []), flush=True)
    rows = []
    for case in cases:
        rows.append(_row(case))
        print(f"| {' | '.join(rows[-1])} |", flush=True)
    if options.write:
        before, _, rest = _PAGE.read_text().partition(_BEGIN)
        _PAGE.write_text(before + _BEGIN + markdown_table(_HEADER, rows) + "\n" + _END + rest.partition(_END)[2])


def _row(case: Worst) -> tuple[str, ...]:
    start, of = f"`{case.command}`", f"{case.sizes[-1]:,} {case.what}"
    runs: list[Run] = []
    for size in case.sizes:
        try:
            run, kilobytes = _measure(case, size)
        except subprocess.CalledProcessError as e:
            return (start, f"{size:,} {case.what}", "", f"ended with {e.returncode}", "", "")
        runs.append(run)
    grows = power(case.sizes, [run.cpu for run in runs])
    resident = f"{runs[-1].resident / 1e6:.0f}"
    return (
        start,
        of,
        f"{kilobytes:,.0f}",
        f"{runs[-1].cpu:.1f}",
        resident,
        "" if math.isnan(grows) else f"{grows:.1f}",
    )


def _measure(case: Worst, size: int) -> tuple[Run, float]:
    """Return a run of the command with an input of one size, and the size of the input's files."""
    CACHE.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=CACHE, prefix="bench-worst-"))
    try:
        folder, out = work / "in", work / "out"
        folder.mkdir()
        out.mkdir()
        case.make(folder, size)
        kilobytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1000
        messages = work / "messages"
        quiet = ("sh", "-c", f'exec prlimit --cpu={_MOST_CPU} "$@" 2>"$MESSAGES"', "sh")
        environment = {
            "TMPDIR": str(out),
            "ROCWHEEL_CACHE_DIR": str(out / "cache"),
            "MESSAGES": str(messages),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        words = (*quiet, *case.words(folder, out))
        run = run_measured(words, watched=(), environment=environment, statuses=(0, 1))
        if "Traceback" in (text := messages.read_text()):
            raise RuntimeError(text)
        return run, kilobytes
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
