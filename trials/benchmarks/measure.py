"""Measuring of child processes, and Markdown tables of what was measured."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["CACHE", "ONE_CORE", "Run", "folder_size", "machine", "markdown_table", "median_run", "run_measured"]

CACHE = Path(__file__).parents[2] / ".cache"
"""Where downloads and benchmark trees are kept; git ignores it."""

ONE_CORE = ("taskset", "--cpu-list", "0")
"""Words before a command, which give it one core."""

_SAMPLE_INTERVAL = 0.1

_SPAWNER = """
import os, sys, time
writer = int(sys.argv[1])
os.set_inheritable(writer, False)
start = time.monotonic()
process = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(process, 0)
wall = time.monotonic() - start
os.write(writer, f"{status} {wall} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss}".encode())
"""
"""A small process that starts commands: what a process holds when it starts another counts as resident there."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a command took: seconds of time and of CPU (of all its processes), and bytes."""

    wall: float
    cpu: float
    resident: int
    """Largest resident memory of any one process (``ru_maxrss``)."""
    scratch: int
    """Most bytes in the watched folders at any moment, beyond those that the run leaves there."""
    output: int
    """Bytes that the run leaves in the watched folders."""


def run_measured(
    command: Sequence[str], *, watched: Sequence[Path], environment: Mapping[str, str], statuses: Sequence[int] = (0,)
) -> Run:
    """Run a command to its end; its messages go where ours go.

    Raises ``subprocess.CalledProcessError`` when it ends with another exit status than ``statuses``.
    """
    before = sum(map(folder_size, watched))
    with _watching(watched) as sizes:
        status, wall, cpu, resident = _spawn(command, {**os.environ, **environment})
    if status not in statuses:
        raise subprocess.CalledProcessError(status, command)
    output = sum(map(folder_size, watched)) - before
    scratch = max(max(sizes) - before - output, 0)
    return Run(wall, cpu, resident, scratch, output)


def _spawn(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, float, float, int]:
    """Run a command; return its exit status, wall time, CPU time and resident memory."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as result:
        words = [sys.executable, "-I", "-S", "-c", _SPAWNER, str(writer), *command]
        subprocess.run(words, env=environment, stdout=subprocess.DEVNULL, pass_fds=[writer], check=True)
        os.close(writer)
        status, wall, cpu, resident = result.read().split()
    return os.waitstatus_to_exitcode(int(status)), float(wall), float(cpu), int(resident) << 10


@contextmanager
def _watching(folders: Sequence[Path]) -> Iterator[list[int]]:
    """Sample the size of folders in a thread until the block ends."""
    sizes = [0]
    done = threading.Event()

    def sample() -> None:
        while not done.wait(_SAMPLE_INTERVAL):
            sizes.append(sum(map(folder_size, folders)))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield sizes
    finally:
        done.set()
        thread.join()


def folder_size(folder: Path) -> int:
    """Return the bytes of all files below a folder; files that vanish meanwhile count nothing."""
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                size += (Path(parent) / name).lstat().st_size
    return size


def median_run(runs: Sequence[Run]) -> Run:
    """Return medians of times, and the largest of what must never be passed."""
    return Run(
        statistics.median(run.wall for run in runs),
        statistics.median(run.cpu for run in runs),
        max(run.resident for run in runs),
        max(run.scratch for run in runs),
        max(run.output for run in runs),
    )


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with its first column to the left and the numbers of the others to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine() -> str:
    """Name the processor and the number of cores at hand, and how busy they were in the last minute."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    return f"{model}, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}"
