"""The table of what was measured, and its place in the documentation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scripts.environments.matrix import Run

__all__ = ["Result", "make_table", "read_outcome", "replace_table"]

_BEGIN = "<!-- environments: make environments writes this table -->"
_END = "<!-- environments end -->"
_HEAD = ("Debian", "glibc", "Python", "packages, as root", "packages, as a user", "rocwheel itself")
_NOT_RUN = "not run"


class Result(NamedTuple):
    """What came out of a run."""

    run: Run
    passed: bool
    outcome: str
    """A few words for the table."""


def read_outcome(status: int, output: str) -> tuple[bool, str]:
    """Return whether a check passed, and in a few words what it says: the self-test's sum, or the failed step."""
    if status:
        steps = re.findall(r"^== (.+)$", output, re.MULTILINE)
        return False, f"**failed: {steps[-1] if steps else 'start'}**"
    sums = re.findall(r"^\d+ checks?: (\d+) passed, 0 failed(?:, (\d+) left out)?$", output, re.MULTILINE)
    if not sums:
        return False, "**failed: no sum of the self-test**"
    passed, left_out = sums[-1]
    return True, f"{passed} passed" + (f", {left_out} left out" if left_out and left_out != "0" else "")


def make_table(results: Iterable[Result]) -> str:
    """Return a Markdown table with a row for each Python of each release."""
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for run, _, outcome in results:
        origin = "" if run.interpreter is None else " (build machine's)"
        row = rows.setdefault((run.release.name, run.release.glibc, run.python + origin), {})
        row[run.subject if run.subject == "rocwheel" else run.user] = outcome
    lines = [_HEAD, ("---",) * len(_HEAD)]
    lines += [
        (*row, *(cells.get(name, _NOT_RUN) for name in ("root", "user", "rocwheel"))) for row, cells in rows.items()
    ]
    return "".join(_line(cells) for cells in lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def replace_table(page: str, table: str) -> str:
    """Return a page with the table between its two marks. Raises `ValueError` when it has no such place."""
    if page.count(_BEGIN) != 1 or page.count(_END) != 1 or page.index(_BEGIN) > page.index(_END):
        msg = f"the page has no place for the table: {_BEGIN} and, below it, {_END}, once each"
        raise ValueError(msg)
    before, rest = page.split(_BEGIN)
    return f"{before}{_BEGIN}\n{table}{_END}{rest.split(_END)[1]}"
