"""The part of docs/trust.md about faults: what was tried so far, what was found, and what holds it now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from faults.case import all_cases
from faults.runner import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from faults.row import Row

__all__ = ["add_rows", "write_page"]

_PAGE = ROOT / "docs/trust.md"
_RUNS = ROOT / "faults/runs.json"
_FOUND = ROOT / "faults/found.toml"
_BEGIN, _END = "<!-- faults: written by make faults -->", "<!-- faults: end -->"


class _Run(msgspec.Struct, frozen=True):
    """All runs of one case together; the calls are those of the last."""

    calls: int = 0
    faults: int = 0
    tolerated: int = 0
    kills: int = 0


class _Finding(msgspec.Struct, frozen=True):
    """What was wrong in a case."""

    case: str
    found: str
    test: str
    """The test that holds it now: file and name."""


class _Findings(msgspec.Struct, frozen=True):
    findings: tuple[_Finding, ...] = msgspec.field(name="finding", default=())


def add_rows(rows: Iterable[Row]) -> None:
    """Add runs to those before, and write the page."""
    runs = _read_runs()
    for row in rows:
        old = runs.get(row.case, _Run())
        runs[row.case] = _Run(row.calls, old.faults + row.faults, old.tolerated + row.tolerated, old.kills + row.kills)
    _RUNS.write_bytes(msgspec.json.format(msgspec.json.encode(dict(sorted(runs.items())))) + b"\n")
    write_page(_PAGE)


def write_page(page: Path) -> None:
    """Replace what stands between the two marks of a page."""
    before, mark, rest = page.read_text().partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not mark or not end:
        msg = f"{page}: has no part between {_BEGIN!r} and {_END!r}"
        raise ValueError(msg)
    page.write_text(f"{before}{_BEGIN}\n\n{_text()}\n\n{_END}{after}")


def _text() -> str:
    runs = _read_runs()
    findings = msgspec.toml.decode(_FOUND.read_bytes(), type=_Findings).findings
    lines = ["| case | calls | faults | work done all the same | kills | found |", "|---|---:|---:|---:|---:|---:|"]
    for case in all_cases():
        run = runs.get(case.name, _Run())
        number = sum(finding.case == case.name for finding in findings)
        lines.append(
            f"| `{case.name}` | {run.calls:,} | {run.faults:,} | {run.tolerated:,} | {run.kills:,} | "
            f"{number or 'nothing'} |"
        )
    lines += ["", "What was found, and what holds it now:", "", "| case | found | held by |", "|---|---|---|"]
    lines += [f"| `{one.case}` | {one.found} | `{one.test}` |" for one in findings]
    return "\n".join(lines)


def _read_runs() -> dict[str, _Run]:
    return msgspec.json.decode(_RUNS.read_bytes(), type=dict[str, _Run]) if _RUNS.exists() else {}
