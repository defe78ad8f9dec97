"""The tables of RESULTS.md: which command refused and which contained which input, written by ``make hostile``."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tests.hostile.trials import SECONDS, WORDS, Ended, make_inputs, run_trials
from tests.support.places import ROOT
from tests.support.results_page import write_part

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

__all__ = ["RESIDENT", "RESULTS", "cell", "cells_of_page", "run_in_process", "wrong"]

RESULTS = Path(__file__).with_name("RESULTS.md")
_BEGIN, _END = "<!-- hostile: written by make hostile -->", "<!-- hostile: end -->"
_CELLS = {0: "contained", 1: "reported", 2: "refused"}
_BROKEN = "**broken**"
_TABLE = re.compile(r"^\| (\w+) ((?:\| `[^`]+` )+)\|\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
_LIMITS = (os.strerror(errno.EFBIG), os.strerror(errno.ENOSPC))
"""What a command says that a limit of its trial has ended, and no rule of its own."""
RESIDENT = 1 << 30
"""Bytes that a command may have in memory at a time."""


def run_in_process(kind: str, command: str, place: Path, outputs: Path) -> dict[str, Ended]:
    """Run a command on every input in ``place`` from a process of its own, which is forked for each."""
    words = [sys.executable, "-m", "tests.hostile.table", kind, command, str(place), str(outputs)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1200)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return {name: Ended(*fields) for name, fields in json.loads(done.stdout).items()}


def wrong(end: Ended) -> str:
    """Return what is wrong about the end of a command, empty when it refused or contained its input."""
    if end.status not in _CELLS or "Traceback" in end.text:
        return f"status {end.status}: {end.text[-1500:]}"
    if end.status == 2 and "rror: " not in end.text:
        return f"refused without a message: {end.text[-500:]}"
    if any(limit in end.text for limit in _LIMITS):
        return f"ended by the size of files that it may write: {end.text[-500:]}"
    if "\x1b" in end.text or "\0" in end.text:
        return f"control characters in the output: {end.text[-500:]!r}"
    if end.seconds > SECONDS / 2 or end.memory > RESIDENT:
        return f"{end.seconds:.0f} seconds, {end.memory >> 20} MiB"
    return ", ".join(end.escaped)


def cell(end: Ended) -> str:
    """Return what the page says of the end of a command."""
    return _CELLS.get(end.status, _BROKEN)


def cells_of_page() -> dict[str, dict[str, dict[str, str]]]:
    """Return what the page says, by kind of input, command and input."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for kind, heading, text in _TABLE.findall(RESULTS.read_text()):
        rows = [[one.strip() for one in line.strip("|").split(" | ")] for line in text.splitlines()]
        commands = re.findall("`(.+?)`", heading)
        found[kind] = {command: {row[0]: row[place] for row in rows} for place, command in enumerate(commands, 1)}
    return {kind: found.get(kind, {}) for kind in WORDS}


def write_page(workers: int) -> list[str]:
    """Run everything, so many commands at a time, write the table, and return what was wrong."""
    with ThreadPoolExecutor(workers) as pool:
        ends = {kind: _run_kind(kind, pool) for kind in WORDS}
    write_part(RESULTS, _BEGIN, _END, "\n".join(_lines(ends)))
    found = [
        (command, name, wrong(end))
        for commands in ends.values()
        for command, by_name in commands.items()
        for name, end in by_name.items()
    ]
    return [f"{command}, {name}: {fault}" for command, name, fault in found if fault]


def _run_kind(kind: str, pool: Executor) -> dict[str, dict[str, Ended]]:
    with tempfile.TemporaryDirectory() as inputs:
        make_inputs(kind, Path(inputs))
        found = pool.map(lambda command: _run_command(kind, command, Path(inputs)), WORDS[kind])
        return dict(zip(WORDS[kind], found, strict=True))


def _run_command(kind: str, command: str, inputs: Path) -> dict[str, Ended]:
    with tempfile.TemporaryDirectory() as outputs:
        found = run_in_process(kind, command, inputs, Path(outputs))
    faults = {name: fault for name, end in found.items() if (fault := wrong(end))}
    print(f"{command} of {kind}s: {faults or 'nothing wrong'}", file=sys.stderr, flush=True)
    return found


def _lines(ends: dict[str, dict[str, dict[str, Ended]]]) -> Iterator[str]:
    trials = [end for commands in ends.values() for found in commands.values() for end in found.values()]
    seconds, memory = max(end.seconds for end in trials), max(end.memory for end in trials)
    yield f"{len(trials)} trials; the longest took {seconds:.1f} s of processor time, the largest {memory >> 20} MiB."
    for kind, commands in ends.items():
        columns = list(commands)
        yield ""
        yield f"| {kind} | " + " | ".join(f"`{column}`" for column in columns) + " |"
        yield "|---" * (len(columns) + 1) + "|"
        for name in commands[columns[0]]:
            yield f"| {name} | " + " | ".join(cell(commands[column][name]) for column in columns) + " |"


if __name__ == "__main__":
    if len(sys.argv) == 1:
        faults = write_page(os.cpu_count() or 1)
        print("\n".join(faults), file=sys.stderr)
        sys.exit(bool(faults))
    print(json.dumps(run_trials(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))))
