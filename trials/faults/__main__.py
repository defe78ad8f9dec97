"""``python -m trials.faults [NAME ...]``: run these cases and races, whose names may be beginnings, or all.

Each fault of a case is tried, it is killed at random moments, and disks fail under it where they can be mounted; of a
race, some rounds are run. ``--sample`` tries a few of each, as the tests do; ``--record`` adds what came of it to
RESULTS.md. ``FAULTS_MOST`` faults are a fixed sample of a case, ``FAULTS_KILLS`` is how often it is killed, and
``FAULTS_FUSE`` how many operations fail on a disk of a FUSE server.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.given_words import read_words
from trials.faults.case import all_cases
from trials.faults.disks import why_no_disks
from trials.faults.fuse.mount import why_no_fuse
from trials.faults.races import RACES
from trials.faults.results import add_rows
from trials.faults.runner import run_case, run_on_disks, run_on_fuse, run_race, table, texts
from trials.faults.shim import why_not

if TYPE_CHECKING:
    from trials.faults.row import DiskRow, FuseRow, RaceRow, Row

_FOLDER = Path(".cache/faults")
_KILLS = 25
_ROUNDS = 20
_DISKS = 10
_FUSE = 100
_SAMPLE, _FEW_KILLS = 8, 3


def main(words: list[str]) -> int:
    """Run the cases and print what came of them; return 1 where something was found."""
    known = {one.name: False for one in all_cases()} | {one.name: True for one in RACES}
    try:
        options, names = read_words(words, ("--sample", "--record"), tuple(known), "case")
    except ValueError as e:
        print(e, file=sys.stderr)
        return 2
    if why_not():
        print(f"no call can be made to fail here: {why_not()}", file=sys.stderr)
        return 2
    cases, races = ([name for name in names if known[name] is is_race] for is_race in (False, True))
    is_sample = "--sample" in options
    rows = [_run_case(name, is_sample=is_sample) for name in cases]
    disked = [_run_on_disks(name, 1 if is_sample else _DISKS) for name in cases if not why_no_disks()]
    fused = [_run_on_fuse(name, is_sample=is_sample) for name in cases if not why_no_fuse()]
    raced = [_run_race(name, 1 if is_sample else _ROUNDS) for name in races]
    print(table(rows))
    if "--record" in options:
        add_rows(rows, disked, fused, raced)
    found = [one.found for some in (rows, disked, fused, raced) for one in some]
    return 1 if any(found) else 0


def _run_case(name: str, *, is_sample: bool) -> Row:
    kills = _FEW_KILLS if is_sample else int(os.environ.get("FAULTS_KILLS") or _KILLS)
    number = str(_SAMPLE) if is_sample else os.environ.get("FAULTS_MOST") or "all"
    row = run_case(name, number, kills, _FOLDER)
    for text in texts(row):
        print(text)
    print(f"{name}: {row.faults:,} faults, {len(row.found)} found", file=sys.stderr, flush=True)
    return row


def _run_on_disks(name: str, number: int) -> DiskRow:
    row = run_on_disks(name, number, _FOLDER)
    for text in row.found:
        print(f"{name}: {text}")
    print(
        f"{name}: {row.full + row.read_only:,} failures on disks, {len(row.found)} found", file=sys.stderr, flush=True
    )
    return row


def _run_on_fuse(name: str, *, is_sample: bool) -> FuseRow:
    row = run_on_fuse(name, _SAMPLE if is_sample else int(os.environ.get("FAULTS_FUSE") or _FUSE), _FOLDER)
    for text in texts(row):
        print(text)
    number = row.failed + row.late + row.unusual
    print(f"{name}: {number:,} failures on FUSE disks, {len(row.found)} found", file=sys.stderr, flush=True)
    return row


def _run_race(name: str, rounds: int) -> RaceRow:
    row = run_race(name, rounds, name)
    for text in row.found:
        print(f"{name}: {text}")
    print(f"{name}: {row.rounds:,} rounds, {len(row.found)} found", file=sys.stderr, flush=True)
    return row


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
