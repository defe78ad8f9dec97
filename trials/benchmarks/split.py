"""Splitting Debian's librocsparse0, beside its floor: the same bytes read, compressed and written by plain workers.

The floor is a program of its own: ``python -m trials.benchmarks.split LIBRARY FOLDER``.
"""

from __future__ import annotations

import shutil
import statistics
import sys
from multiprocessing import Process
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.core.compression import DEVICE_CODE_LEVEL, zstd
from trials.benchmarks.device_code import fetched_library
from trials.benchmarks.measure import CACHE, Run, folder_size, machine, markdown_table, run_measured

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["compress_plainly", "main"]

_WORK = CACHE / "bench-split"
_RUNS = 3
_WORKERS = 2
_PIECE = 2 << 20
"""About the size of a code object of the library."""
_HEADER = ("", "time, s", "of the floor", "CPU, s", "memory, MB", "written, MB")


def main() -> None:
    """Print the table for the documentation: medians of runs that take turns."""
    library = fetched_library()
    _WORK.mkdir(parents=True, exist_ok=True)
    print(f"{machine()}; median of {_RUNS} runs in turn\n", flush=True)
    commands: dict[str, tuple[str, ...]] = {
        "floor: read, compress, write": ("-m", "trials.benchmarks.split", str(library), str(_WORK / "out")),
        "`device split`": ("-m", "rocwheel", "device", "split", str(library), "-d", str(_WORK / "out"), "-q"),
    }
    runs: dict[str, list[tuple[Run, int]]] = {name: [] for name in commands}
    try:
        for _ in range(_RUNS):
            for name, words in commands.items():
                runs[name].append(_measure(words))
        _print_join(library)
        _print_compress(library)
    finally:
        shutil.rmtree(_WORK, ignore_errors=True)
    floor = statistics.median(run.wall for run, _ in runs["floor: read, compress, write"])
    print(markdown_table(_HEADER, [_row(name, measured, floor) for name, measured in runs.items()]))


def _measure(words: Sequence[str]) -> tuple[Run, int]:
    shutil.rmtree(_WORK / "out", ignore_errors=True)
    run = run_measured([sys.executable, *words], watched=(), environment={})
    return run, folder_size(_WORK / "out")


def _print_join(library: Path) -> None:
    """Print what joining takes of what the last run has split."""
    out = _WORK / "out"
    devices = [str(path) for path in sorted(out.iterdir()) if path.name != "host"]
    host = str(out / "host" / library.name)
    words = ("-m", "rocwheel", "device", "join", host, *devices, "-d", str(_WORK / "fat"), "-q")
    run = run_measured([sys.executable, *words], watched=(), environment={})
    print(f"`device join` of all targets: {run.wall:.1f} s, {run.resident / 1e6:.0f} MB of memory\n", flush=True)


def _print_compress(library: Path) -> None:
    """Print what compressing the largest archive takes, that is written without compression."""
    options = ("-d", str(_WORK / "out"), "--scheme", "none", "-q")
    _measure(("-m", "rocwheel", "device", "split", str(library), *options))
    largest = max((_WORK / "out").rglob("*.kpack"), key=lambda path: path.stat().st_size)
    words = ("-m", "rocwheel", "device", "compress", str(largest), "-o", str(_WORK / "small.kpack"), "-q")
    run = run_measured([sys.executable, *words], watched=(), environment={})
    size = largest.stat().st_size / 1e6
    took = f"{run.wall:.1f} s, {run.resident / 1e6:.0f} MB of memory"
    print(f"`device compress` of an archive of {size:.0f} MB: {took}\n", flush=True)


def _row(name: str, measured: Sequence[tuple[Run, int]], floor: float) -> tuple[str, ...]:
    runs = [run for run, _ in measured]
    wall = statistics.median(run.wall for run in runs)
    cpu = statistics.median(run.cpu for run in runs)
    memory = max(run.resident for run in runs)
    size = measured[0][1]
    return name, f"{wall:.1f}", f"{wall / floor:.2f}", f"{cpu:.1f}", f"{memory / 1e6:.0f}", f"{size / 1e6:.0f}"


def compress_plainly(library: Path, folder: Path) -> None:
    """Compress the file in pieces with worker processes, and write what they give."""
    folder.mkdir(parents=True)
    workers = [Process(target=_work, args=(library, folder, number)) for number in range(_WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        sys.exit("a worker of the floor failed")


def _work(library: Path, folder: Path, number: int) -> None:
    with library.open("rb") as source, (folder / str(number)).open("wb") as made:
        for start in range(number * _PIECE, library.stat().st_size, _WORKERS * _PIECE):
            source.seek(start)
            made.write(zstd.compress(source.read(_PIECE), DEVICE_CODE_LEVEL))


if __name__ == "__main__":
    compress_plainly(*map(Path, sys.argv[1:]))
