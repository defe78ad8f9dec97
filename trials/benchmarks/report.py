"""``rocwheel report`` on over 2 GB of binaries, beside the floor: every member inflated once, by two threads.

A second floor also hashes them, as the audit of a report does to compare them with RECORD.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from trials.benchmarks.build import OUTPUT, measure_build
from trials.benchmarks.measure import CACHE, Run, machine, markdown_table, median_run, run_measured
from trials.benchmarks.tree import make_tree

__all__ = ["main"]

_ROUNDS = 3
_FLOOR = """
import pathlib, sys
from concurrent.futures import ThreadPoolExecutor
from rocwheel.wheels import zip_reader as reader
wheels = pathlib.Path(sys.argv[2]).rglob("*.whl")
members = sorted((member for wheel in wheels for member in reader.read_directory(wheel)), key=lambda one: -one.size)
with ThreadPoolExecutor(2) as executor:
    list(executor.map(getattr(reader, sys.argv[1]), members))
"""
_HEADER = ("", "wall s", "CPU s", "resident MB")


def main(arguments: list[str] | None = None) -> None:
    """Print the table; ``arguments`` are those of the command line of this benchmark alone."""
    parser = argparse.ArgumentParser(prog="python -m trials.benchmarks.report", description=__doc__)
    parser.add_argument("--build", type=Path, help="folder with a build (default: one of Debian's packages)")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help=f"measured rounds (default: {_ROUNDS})")
    options = parser.parse_args(arguments or [])
    build = options.build or _built()
    print(f"{machine()}; {options.rounds} round(s), medians\n", flush=True)
    rounds = [
        (_report(build), _report(build, "--estimate"), _floor("check_member", build), _floor("digest_member", build))
        for _ in range(options.rounds)
    ]
    names = ("`rocwheel report`", "with `--estimate`", "floor: inflate every member", "floor: inflate and hash them")
    rows = [_row(name, median_run(runs)) for name, runs in zip(names, zip(*rounds, strict=True), strict=True)]
    print(markdown_table(_HEADER, rows))


def _built() -> Path:
    if not list(OUTPUT.rglob("*.whl")):
        measure_build(make_tree())
    return OUTPUT


def _report(build: Path, *options: str) -> Run:
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        page = Path(folder) / "report.html"
        command = (sys.executable, "-m", "rocwheel", "report", str(build), "-o", str(page), "--quiet", *options)
        return run_measured(command, watched=(), environment={"TMPDIR": folder})


def _floor(function: str, build: Path) -> Run:
    return run_measured((sys.executable, "-c", _FLOOR, function, str(build)), watched=(), environment={})


def _row(name: str, run: Run) -> tuple[str, ...]:
    return name, f"{run.wall:.1f}", f"{run.cpu:.1f}", f"{run.resident / 1e6:.0f}"


if __name__ == "__main__":
    main(sys.argv[1:])
