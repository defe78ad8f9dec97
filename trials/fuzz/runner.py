"""Runs every harness in a process of its own, and says what came of it."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import msgspec

from tests.support.memory_folder import memory_folder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["Row", "run_harness", "table"]

_COVERAGE = re.compile(r"\bcov: (\d+)")
_EXECUTIONS = re.compile(r"^(?:#|stat::number_of_executed_units: )(\d+)", re.MULTILINE)
_MOST_STARTS = 5
_GRACE = 90
"""Seconds that a process may take to start and to end."""


class Row(msgspec.Struct, frozen=True):
    """What came of one harness."""

    harness: str
    seconds: int
    """Of processor time, which a busy machine doesn't stretch."""
    executions: int
    coverage: int
    """Edges of rocwheel's code that inputs have led through."""
    found: tuple[str, ...]
    """Titles of what was found."""


class _Part(msgspec.Struct, frozen=True):
    """What came of one process."""

    seconds: float
    """On the clock, by which libFuzzer ends."""
    processor: float
    """Seconds of processor time."""
    executions: int
    coverage: int
    status: int


def run_harness(name: str, folder: Path, seconds: int) -> Row:
    """Fuzz with one harness for this time; a process that a fault ends is started again for the rest of it."""
    parts: list[_Part] = []
    while (left := seconds - int(sum(part.seconds for part in parts))) > 0 and len(parts) < _MOST_STARTS:
        parts.append(_run_part(name, folder, left))
        if parts[-1].executions == 0:
            break
    executions = sum(part.executions for part in parts)
    coverage = max(part.coverage for part in parts)
    return Row(name, round(sum(part.processor for part in parts)), executions, coverage, _titles(name, folder, parts))


def _run_part(name: str, folder: Path, seconds: int) -> _Part:
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "trials.fuzz.worker", name, str(folder), str(seconds)]
    log = folder / f"{name}.log"
    start, spent = time.monotonic(), _spent()
    with log.open("wb") as file, memory_folder("rocwheel-fuzz-") as memory:
        environ, limit = {**os.environ, "TMPDIR": str(memory)}, seconds + _GRACE
        try:
            status = subprocess.run(
                command, stdout=file, stderr=file, timeout=limit, env=environ, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            status = -1
    text = log.read_text(errors="replace")
    executions = max(map(int, _EXECUTIONS.findall(text)), default=0)
    coverage = max(map(int, _COVERAGE.findall(text)), default=0)
    return _Part(time.monotonic() - start, _spent() - spent, executions, coverage, status)


def _spent() -> float:
    """Return the seconds of processor time of all processes that were started here and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _titles(name: str, folder: Path, parts: Iterable[_Part]) -> tuple[str, ...]:
    """Return the faults that were noted, and the processes that ended by themselves."""
    noted = (path.read_text(errors="replace").partition("\n")[0] for path in folder.glob(f"found/{name}-*.txt"))
    ended = [f"{name}: the process ended with status {part.status}" for part in parts if part.status]
    return (*sorted(set(noted)), *sorted(set(ended)))


def table(rows: Iterable[Row]) -> str:
    """Return a Markdown table of what came of harnesses."""
    lines = ["| harness | executions | per second | coverage | found |", "|---|---|---|---|---|"]
    lines += [
        f"| {row.harness} | {row.executions:,} | {row.executions // max(row.seconds, 1):,} | {row.coverage:,} | "
        f"{len(row.found) or 'nothing'} |"
        for row in rows
    ]
    return "\n".join(lines)
