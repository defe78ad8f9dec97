"""Runs one case with its faults: ``LD_PRELOAD=SHIM python -m trials.faults.worker CASE FOLDER FAULTS KILLS``.

It prints what came of it as JSON. FAULTS is how many, ``all``, or ``trace`` to print the calls instead; KILLS is how
often to kill the command at a random moment. The same are chosen each time.
"""

from __future__ import annotations

import gc
import os
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tests.support.command_server import load
from trials.faults.attempt import attempt, attempt_kill, look_at, prepare
from trials.faults.case import Place, find_case
from trials.faults.choice import all_faults, read_calls, sample
from trials.faults.forked import run
from trials.faults.row import Row, found_in
from trials.faults.shim import Plan

if TYPE_CHECKING:
    from trials.faults.attempt import Attempt


def main(name: str, folder: str, number: str, kills: str) -> None:
    """Run the case with its faults."""
    gc.disable()
    load()
    case, place = find_case(name), Place(Path(folder).resolve())
    prepare(case.prepare, place)
    gc.freeze()
    gc.enable()
    file = os.memfd_create("trace")
    calm = look_at(case, place, lambda command: run(command, Plan(case.watched(place), trace=file)))
    trace = os.pread(file, os.fstat(file).st_size, 0).decode(errors="surrogateescape")
    if number == "trace":
        print(trace, end="")
        return
    every = all_faults(case.own_calls(place, read_calls(trace)))
    faults = every if number == "all" else sample(every, int(number), name)
    attempts = [attempt(case, place, calm, fault) for fault in faults]
    moments = random.Random(name)
    killed = [attempt_kill(case, place, calm, moments.uniform(0, calm.seconds)) for _ in range(int(kills))]
    print(msgspec.json.encode(_row(name, len(trace.splitlines()), attempts, killed)).decode())


def _row(name: str, calls: int, attempts: list[Attempt], killed: list[Attempt]) -> Row:
    met = [one for one in attempts if one.hit]
    found = tuple(found_in(one) for one in (*attempts, *killed) if one.problems)
    return Row(name, calls, len(met), len(killed), sum(one.status == 0 for one in met), found)


if __name__ == "__main__":
    main(*sys.argv[1:])
