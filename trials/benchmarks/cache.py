"""``rocwheel build --cache``: what it costs a clean build, and what a second build takes, on the tree of `build`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.filesize import decimal

from trials.benchmarks.build import OUTPUT, measure_build
from trials.benchmarks.cases.case import floor
from trials.benchmarks.measure import CACHE, folder_size, machine, markdown_table, median_run, run_measured
from trials.benchmarks.tree import make_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trials.benchmarks.measure import Run

__all__ = ["main"]

_FOLDER = CACHE / "bench" / "cache"
_CHANGED = "librocrand.so.1*"
_ROUNDS = 3


def main(arguments: list[str] | None = None) -> None:
    """Print the table; ``arguments`` are those of the command line of this benchmark alone."""
    parser = argparse.ArgumentParser(prog="python -m trials.benchmarks.cache", description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help=f"measured rounds (default: {_ROUNDS})")
    rounds = parser.parse_args(arguments or []).rounds
    os.environ["ROCWHEEL_CACHE_DIR"] = str(_FOLDER)
    tree = make_tree()
    library = next(path for path in sorted(tree.rglob(_CHANGED)) if path.is_file() and not path.is_symlink())
    print(f"{machine()}; {decimal(folder_size(tree))} of artifacts; medians of {rounds} rounds\n", flush=True)
    measure_build(tree)  # Not counted: it warms the page cache.
    runs: dict[str, list[Run]] = {}
    for _ in range(rounds):
        for name, run in _round(tree, library):
            runs.setdefault(name, []).append(run)
    shutil.rmtree(_FOLDER)
    medians = {name: median_run(found) for name, found in runs.items()}
    whole = next(iter(medians.values()))
    rows = [_row(name, run, whole) for name, run in medians.items()]
    print(markdown_table(("", "wall s", "CPU s", "wall", "CPU", "resident"), rows))


def _round(tree: Path, library: Path) -> Iterator[tuple[str, Run]]:
    shutil.rmtree(_FOLDER, ignore_errors=True)
    yield "without a cache", measure_build(tree, "--no-cache")
    yield "with an empty cache", measure_build(tree, "--cache")
    yield "nothing changed", measure_build(tree, "--cache", is_again=True)
    yield "once more", measure_build(tree, "--cache", is_again=True)
    with _changed(library):
        name = f"one library of {decimal(library.stat().st_size)} changed"
        yield name, measure_build(tree, "--cache", is_again=True)
    yield "another version", measure_build(tree, "--cache", "--version", "9.9.9", is_again=True)
    yield "nothing changed, into an empty folder", measure_build(tree, "--cache")
    yield "floor: read and hash the wheels", _hash(OUTPUT)
    yield "floor: read and hash all files of the artifacts", _hash(tree)


def _hash(folder: Path) -> Run:
    return run_measured(floor("hash", folder), watched=(), environment={})


@contextmanager
def _changed(library: Path) -> Iterator[None]:
    """Have other bytes at the end of a library while the block lasts; what follows them is never looked at."""
    status = library.stat()
    with library.open("ab") as file:
        file.write(os.urandom(8))
    try:
        yield
    finally:
        os.truncate(library, status.st_size)


def _row(name: str, run: Run, whole: Run) -> tuple[str, ...]:
    shares = (f"{run.wall / whole.wall:.2f}", f"{run.cpu / whole.cpu:.2f}")
    return (name, f"{run.wall:.1f}", f"{run.cpu:.1f}", *shares, decimal(run.resident))


if __name__ == "__main__":
    main(sys.argv[1:])
    shutil.rmtree(OUTPUT, ignore_errors=True)
