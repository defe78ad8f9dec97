"""Writes the tables of RESULTS.md about corpora: what was compared, what was found, and what holds it now."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import msgspec

from tests.support.results_page import finding_lines, read_counts, read_findings, write_counts, write_part
from trials.corpora.checks import CHECKS
from trials.corpora.row import is_explained, read_explanations
from trials.corpora.wheels import System, read_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trials.corpora.row import Explanation, Row

RESULTS, _RUNS, _FOUND = (Path(__file__).with_name(name) for name in ("RESULTS.md", "runs.json", "found.toml"))
_RELEASES = Path(__file__).with_name("releases.json")
_BEGIN, _END = "<!-- corpora: written by make corpus -->", "<!-- corpora: end -->"


class _Run(msgspec.Struct, frozen=True):
    """The last run of a check."""

    files: int = 0
    answers: int = 0
    explained: int = 0
    unexplained: int = 0


class _Count(msgspec.Struct, frozen=True):
    """How often a rule was broken, and in how many wheels, in an older state of the project and now."""

    before: int
    after: int
    wheels_before: int
    wheels_after: int


def add_rows(rows: Iterable[Row]) -> None:
    """Put runs in the place of those before, and write the page."""
    runs = read_counts(_RUNS, _Run)
    for row in rows:
        known = sum(map(is_explained, row.differences))
        runs[row.check] = _Run(row.files, row.answers, known, len(row.differences) - known)
    write_counts(_RUNS, runs)
    write_page(RESULTS)


def write_page(page: Path) -> None:
    """Replace what stands between the two marks of a page."""
    write_part(page, _BEGIN, _END, _text())


def _text() -> str:
    systems = Counter(wheel.system for wheel in read_list())
    runs = read_counts(_RUNS, _Run)
    linux, windows, musl, macos = (systems[system] for system in get_args(System))
    lines = [
        f"The list has {linux} wheels for Linux, {windows} for Windows, {musl} for musl and {macos} for macOS.",
        "",
    ]
    lines += ["| check | files | answers | explained | unexplained | found |", "|---|---:|---:|---:|---:|---:|"]
    findings = read_findings(_FOUND, "check")
    for name in CHECKS:
        run = runs.get(name, _Run())
        number = sum(finding.subject == name for finding in findings) or "nothing"
        counts = f"{run.files:,} | {run.answers:,} | {run.explained:,} | {run.unexplained:,}"
        lines.append(f"| `{name}` | {counts} | {number} |")
    lines += ["", "| check | what is compared |", "|---|---|"]
    lines += [f"| `{name}` | {check.compared} |" for name, check in CHECKS.items()]
    lines += ["", "Differences that were looked at:", "", "| check | tool | what | why |", "|---|---|---|---|"]
    lines += dict.fromkeys(map(_explanation_line, read_explanations()))
    lines += ["", *finding_lines("check", findings), "", *_comparison()]
    return "\n".join(lines)


def _comparison() -> Iterator[str]:
    """Yield what the audit said of the wheels before its rules were held against them, and what it says now."""
    counts = read_counts(_RELEASES, _Count)
    yield "Findings of the audit in all wheels, each audited by itself, in revision 4f7e88ee and now:"
    yield ""
    yield "| finding | before | now | wheels before | wheels now |"
    yield "|---|---:|---:|---:|---:|"
    for name, one in counts.items():
        yield f"| {name} | {one.before:,} | {one.after:,} | {one.wheels_before} | {one.wheels_after} |"


def _explanation_line(one: Explanation) -> str:
    what = "everything" if one.fact == "*" else one.fact
    return f"| `{one.check}` | {one.tool} | {what} | {one.why} |"
