"""Writes the tables of RESULTS.md about fuzzing: what was run so far, what was found, and what holds it now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tests.support.places import ROOT
from tests.support.results_page import finding_lines, read_counts, read_findings, write_counts, write_part
from trials.fuzz.harness import all_harnesses

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from trials.fuzz.runner import Row

RESULTS = ROOT / "trials/fuzz/RESULTS.md"
_RUNS = ROOT / "trials/fuzz/runs.json"
_FOUND = ROOT / "trials/fuzz/found.toml"
_BEGIN, _END = "<!-- fuzz: written by make fuzz -->", "<!-- fuzz: end -->"


class _Run(msgspec.Struct, frozen=True):
    """All runs of one harness together."""

    seconds: int = 0
    executions: int = 0
    coverage: int = 0
    """That of the run that had the most."""


def add_rows(rows: Iterable[Row]) -> None:
    """Add runs to those before, and write the page."""
    runs = read_counts(_RUNS, _Run)
    for row in rows:
        old = runs.get(row.harness, _Run())
        seconds, executions = old.seconds + row.seconds, old.executions + row.executions
        runs[row.harness] = _Run(seconds, executions, max(old.coverage, row.coverage))
    write_counts(_RUNS, runs)
    write_page(RESULTS)


def write_page(page: Path) -> None:
    """Replace what stands between the two marks of a page."""
    write_part(page, _BEGIN, _END, _text())


def _text() -> str:
    runs = read_counts(_RUNS, _Run)
    known = [harness.name for harness in all_harnesses()]
    findings = read_findings(_FOUND, "harness")
    lines = ["| harness | executions | minutes | coverage | found |", "|---|---:|---:|---:|---:|"]
    for name in known:
        number = sum(finding.subject == name for finding in findings)
        lines.append(f"| `{name}` | {_cells(runs.get(name))} | {number or 'nothing'} |")
    return "\n".join([*lines, "", *finding_lines("harness", findings)])


def _cells(run: _Run | None) -> str:
    return f"{run.executions:,} | {run.seconds / 60:.1f} | {run.coverage:,}" if run else "not recorded yet | |"
