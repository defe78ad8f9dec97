"""The process that has commands run at the same time: ``python -m trials.faults.race_worker NAME FOLDER ROUNDS SEED``.

It prints what came of it as JSON.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import msgspec

from tests.support.command_server import load
from trials.faults.attempt import prepare
from trials.faults.case import Place
from trials.faults.race import race, run_calmly
from trials.faults.races import find_race
from trials.faults.row import RaceRow


def main(name: str, folder: str, number: str, seed: str) -> None:
    """Run so many rounds."""
    gc.disable()
    load()
    one, place = find_race(name), Place(Path(folder).resolve())
    prepare(one.prepare, place)
    gc.freeze()
    gc.enable()
    calm = run_calmly(one, place)
    rounds = [race(one, place, calm, f"{seed}-{number}") for number in range(int(number))]
    killed, looks = sum(each.killed for each in rounds), sum(each.looks for each in rounds)
    found = tuple(line for each in rounds for line in each.problems)
    row = RaceRow(name, len(rounds), len(one.commands(place)), killed, looks, found)
    print(msgspec.json.encode(row).decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
