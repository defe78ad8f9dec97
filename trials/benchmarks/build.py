"""``rocwheel build`` on over 2 GB of binaries, beside the floor: what two plain workers take for the same bytes."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from rich.filesize import decimal

from trials.benchmarks.floor import unpack_members
from trials.benchmarks.measure import (
    CACHE,
    ONE_CORE,
    Run,
    folder_size,
    machine,
    markdown_table,
    median_run,
    run_measured,
)
from trials.benchmarks.tree import make_tree

__all__ = ["HEADER", "OUTPUT", "main", "measure_build", "measure_floor", "run_row"]

_WORK = CACHE / "bench"
OUTPUT = _WORK / "out"
"""Where the last run has written."""
_ROUNDS = 3
HEADER = ("", "wall s", "CPU s", "resident", "scratch", "output bytes")


def main(arguments: list[str] | None = None) -> None:
    """Print the tables; ``arguments`` are those of the command line of this benchmark alone."""
    parser = argparse.ArgumentParser(prog="python -m trials.benchmarks.build", description=__doc__)
    parser.add_argument("--tree", type=Path, help="folder of artifacts (default: made from Debian's packages)")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help=f"measured rounds (default: {_ROUNDS})")
    options = parser.parse_args(arguments or [])
    tree = options.tree or make_tree()
    print(f"{machine()}; {decimal(folder_size(tree))} of artifacts; medians of {options.rounds} rounds\n", flush=True)
    members = _WORK / "members"
    shutil.rmtree(members, ignore_errors=True)
    try:
        measure_build(tree)  # Not counted: it warms the page cache and makes the members that the floor packs.
        unpack_members(sorted(OUTPUT.rglob("*.whl")), members)
        print(_table(tree, members, options.rounds))
    finally:
        shutil.rmtree(members, ignore_errors=True)


def _table(tree: Path, members: Path, rounds: int) -> str:
    runs = [
        (measure_floor(members, "same"), measure_floor(members, "same", tree), measure_build(tree))
        for _ in range(rounds)
    ]
    floor, hashing, build = map(median_run, zip(*runs, strict=True))
    rows = [
        run_row("`rocwheel build`", build),
        run_row("floor: the same codecs, two plain workers", floor),
        _ratio("build : floor", build, floor),
        run_row("floor, with hashes of the artifacts, as bills of materials have them", hashing),
        _ratio("build : that floor", build, hashing),
        run_row("`rocwheel build`, on one core", measure_build(tree, before=ONE_CORE)),
        run_row("for orientation: zlib 6 throughout", measure_floor(members, "zlib")),
    ]
    return markdown_table(HEADER, rows)


def measure_build(tree: Path, *options: str, is_again: bool = False, before: tuple[str, ...] = ()) -> Run:
    """Build the packages of the artifacts in ``tree`` into `OUTPUT`, without a cache unless ``options`` name it.

    The folder is emptied first, unless a build ``is_again`` one of what stands there. The words ``before`` start it.
    """
    output = OUTPUT if is_again else _emptied()
    command = [
        *before,
        sys.executable,
        "-m",
        "rocwheel",
        "build",
        "--artifact-dir",
        str(tree),
        "--dest-dir",
        str(output),
    ]
    cached = () if {"--cache", "--scheduler"}.intersection(options) else ("--no-cache",)
    return _measure([*command, *options, *cached, "--quiet"], output)


def measure_floor(members: Path, codec: str, *artifacts: Path) -> Run:
    """Do what a build has to do with members that `unpack_members` left, with a codec of `CODECS`.

    The files of a folder of ``artifacts`` are hashed, too.
    """
    output = _emptied()
    return _measure(
        [sys.executable, "-m", "trials.benchmarks.floor", *map(str, (members, output, codec, *artifacts))], output
    )


def _emptied() -> Path:
    """Return the folder of outputs, empty: every run writes new files."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)
    return OUTPUT


def _measure(command: list[str], output: Path) -> Run:
    temporary = _WORK / "tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    return run_measured(command, watched=(output, temporary), environment={"TMPDIR": str(temporary)})


def run_row(name: str, run: Run) -> tuple[str, ...]:
    """Return a row under `HEADER`."""
    sizes = (decimal(run.resident), decimal(run.scratch), f"{run.output:,}")
    return (name, f"{run.wall:.1f}", f"{run.cpu:.1f}", *sizes)


def _ratio(name: str, run: Run, floor: Run) -> tuple[str, ...]:
    return (
        name,
        f"{run.wall / floor.wall:.2f}",
        f"{run.cpu / floor.cpu:.2f}",
        "",
        "",
        f"{run.output / floor.output:.4f}",
    )


if __name__ == "__main__":
    main(sys.argv[1:])
