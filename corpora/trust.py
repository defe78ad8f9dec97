"""The part of docs/trust.md about corpora: what was compared, what was found, and what holds it now."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from corpora.checks import CHECKS
from corpora.row import is_explained, read_explanations
from corpora.wheels import read_list

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpora.row import Explanation, Row

__all__ = ["add_rows", "write_page"]

_ROOT = Path(__file__).parents[1]
_PAGE = _ROOT / "docs/trust.md"
_RUNS, _FOUND = (Path(__file__).with_name(name) for name in ("runs.json", "found.toml"))
_BEGIN, _END = "<!-- corpora: written by make corpus -->", "<!-- corpora: end -->"


class _Run(msgspec.Struct, frozen=True):
    """The last run of a check."""

    files: int = 0
    answers: int = 0
    explained: int = 0
    unexplained: int = 0


class _Finding(msgspec.Struct, frozen=True):
    """A fault of rocwheel's that a check found."""

    check: str
    found: str
    test: str
    """The test that holds it now: file and name."""


class _Findings(msgspec.Struct, frozen=True):
    findings: tuple[_Finding, ...] = msgspec.field(name="finding", default=())


def add_rows(rows: Iterable[Row]) -> None:
    """Put runs in the place of those before, and write the page."""
    runs = _read_runs()
    for row in rows:
        known = sum(map(is_explained, row.differences))
        runs[row.check] = _Run(row.files, row.answers, known, len(row.differences) - known)
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
    systems = Counter(wheel.system for wheel in read_list())
    runs = _read_runs()
    lines = [f"The list has {systems['linux']} wheels for Linux and {systems['windows']} for Windows.", ""]
    lines += ["| check | files | answers | explained | unexplained | found |", "|---|---:|---:|---:|---:|---:|"]
    findings = msgspec.toml.decode(_FOUND.read_bytes(), type=_Findings).findings
    for name in CHECKS:
        run = runs.get(name, _Run())
        number = sum(finding.check == name for finding in findings) or "nothing"
        counts = f"{run.files:,} | {run.answers:,} | {run.explained:,} | {run.unexplained:,}"
        lines.append(f"| `{name}` | {counts} | {number} |")
    lines += ["", "| check | what is compared |", "|---|---|"]
    lines += [f"| `{name}` | {check.compared} |" for name, check in CHECKS.items()]
    lines += ["", "Differences that were looked at:", "", "| check | tool | what | why |", "|---|---|---|---|"]
    lines += dict.fromkeys(map(_explanation_line, read_explanations()))
    lines += ["", "What was found, and what holds it now:", "", "| check | found | held by |", "|---|---|---|"]
    lines += [f"| `{one.check}` | {one.found} | `{one.test}` |" for one in findings]
    return "\n".join(lines)


def _explanation_line(one: Explanation) -> str:
    what = "everything" if one.fact == "*" else one.fact
    return f"| `{one.check}` | {one.tool} | {what} | {one.why} |"


def _read_runs() -> dict[str, _Run]:
    return msgspec.json.decode(_RUNS.read_bytes(), type=dict[str, _Run]) if _RUNS.exists() else {}
