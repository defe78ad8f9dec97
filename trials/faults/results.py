"""Writes the tables of RESULTS.md about faults: what was tried so far, what was found, and what holds it now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tests.support.places import ROOT
from tests.support.results_page import finding_lines, read_counts, read_findings, write_counts, write_part
from trials.faults.case import all_cases
from trials.faults.races import RACES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from trials.faults.row import DiskRow, FuseRow, RaceRow, Row

RESULTS = ROOT / "trials/faults/RESULTS.md"
_RUNS, _RACES, _FUSED = (
    ROOT / "trials/faults/runs.json",
    ROOT / "trials/faults/races.json",
    ROOT / "trials/faults/fuse/runs.json",
)
_FOUND = ROOT / "trials/faults/found.toml"
_BEGIN, _END = "<!-- faults: written by make faults -->", "<!-- faults: end -->"


class _Run(msgspec.Struct, frozen=True):
    """All runs of one case together; the calls are those of the last."""

    calls: int = 0
    faults: int = 0
    tolerated: int = 0
    kills: int = 0
    full: int = 0
    """How often it failed on a full disk, and ``read_only`` as its disk turned read-only."""
    read_only: int = 0


class _Fused(msgspec.Struct, frozen=True):
    """All runs of one case on disks of a FUSE server together; the operations are those of the last."""

    operations: int = 0
    failed: int = 0
    late: int = 0
    unusual: int = 0
    tolerated: int = 0


class _Raced(msgspec.Struct, frozen=True):
    """All rounds of one race together; the commands are those of the last."""

    rounds: int = 0
    commands: int = 0
    killed: int = 0
    looks: int = 0


def add_rows(
    rows: Iterable[Row], disked: Iterable[DiskRow], fused: Iterable[FuseRow], raced: Iterable[RaceRow]
) -> None:
    """Add runs to those before, and write the page."""
    write_counts(_FUSED, _with_fused(read_counts(_FUSED, _Fused), fused))
    write_counts(_RACES, _with_races(read_counts(_RACES, _Raced), raced))
    runs = read_counts(_RUNS, _Run)
    for row in rows:
        old = runs.get(row.case, _Run())
        faults, tolerated, kills = old.faults + row.faults, old.tolerated + row.tolerated, old.kills + row.kills
        runs[row.case] = _Run(row.calls, faults, tolerated, kills, old.full, old.read_only)
    for one in disked:
        old = runs.get(one.case, _Run())
        full, read_only = old.full + one.full, old.read_only + one.read_only
        runs[one.case] = msgspec.structs.replace(old, full=full, read_only=read_only)
    write_counts(_RUNS, runs)
    write_page(RESULTS)


def _with_fused(runs: dict[str, _Fused], rows: Iterable[FuseRow]) -> dict[str, _Fused]:
    for row in rows:
        old = runs.get(row.case, _Fused())
        failed, late, unusual = old.failed + row.failed, old.late + row.late, old.unusual + row.unusual
        runs[row.case] = _Fused(row.operations, failed, late, unusual, old.tolerated + row.tolerated)
    return runs


def _with_races(runs: dict[str, _Raced], rows: Iterable[RaceRow]) -> dict[str, _Raced]:
    for row in rows:
        old = runs.get(row.race, _Raced())
        rounds, killed, looks = old.rounds + row.rounds, old.killed + row.killed, old.looks + row.looks
        runs[row.race] = _Raced(rounds, row.commands, killed, looks)
    return runs


def write_page(page: Path) -> None:
    """Replace what stands between the two marks of a page."""
    write_part(page, _BEGIN, _END, _text())


def _text() -> str:
    runs = read_counts(_RUNS, _Run)
    findings = read_findings(_FOUND, "case")
    lines = [
        "| case | calls | faults | work done all the same | kills | full disks | read-only disks | found |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for case in all_cases():
        run = runs.get(case.name, _Run())
        number = sum(finding.subject == case.name for finding in findings)
        lines.append(
            f"| `{case.name}` | {run.calls:,} | {run.faults:,} | {run.tolerated:,} | {run.kills:,} | "
            f"{run.full:,} | {run.read_only:,} | {number or 'nothing'} |"
        )
    lines += ["", *_fuse_lines(), "", *_race_lines()]
    return "\n".join([*lines, "", *finding_lines("case", findings)])


def _fuse_lines() -> list[str]:
    runs = read_counts(_FUSED, _Fused)
    lines = [
        "| case on FUSE disks | operations | failed | writes failed late | unusual disks | work done all the same |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name in (case.name for case in all_cases() if case.name in runs):
        run = runs[name]
        numbers = (run.operations, run.failed, run.late, run.unusual, run.tolerated)
        lines.append(f"| `{name}` | {' | '.join(f'{number:,}' for number in numbers)} |")
    return lines


def _race_lines() -> list[str]:
    runs = read_counts(_RACES, _Raced)
    lines = [
        "| at the same time | rounds | commands in each | killed | looks of a reader |",
        "|---|---:|---:|---:|---:|",
    ]
    for one in RACES:
        run = runs.get(one.name, _Raced())
        looks = f"{run.looks:,}" if one.look else "none"
        lines.append(f"| `{one.name}` | {run.rounds:,} | {run.commands:,} | {run.killed:,} | {looks} |")
    return lines
