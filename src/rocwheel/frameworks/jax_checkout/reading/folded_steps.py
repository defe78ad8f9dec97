"""Steps of workflows whose lines YAML joins to one: a folded text (``>``), or one without quotes over several."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["FoldedStep", "folded_step"]

_RUN = re.compile(r"(?P<indent>[ ]*(?:-[ ]+)*)[\"']?run[\"']?[ ]*:(?:[ ]+(?P<value>[^|\s].*)|[ ]*)$")
_NO_TEXT = re.compile(r"(?:>[-+0-9]*)?[ ]*(?:#.*)?")


class FoldedStep(NamedTuple):
    """A step whose lines are joined."""

    head: int
    """The index of the line with its key."""
    indent: str
    """What stands before the key."""
    is_whole: bool
    """Whether the lines that were asked about are all that it runs."""


def folded_step(lines: list[str], first: int, last: int) -> FoldedStep | None:
    """Return the step that joins the lines from index ``first`` up to ``last`` with others; ``None`` if none does."""
    column = _column(lines[first])
    for index in range(first - 1, -1, -1):
        match = _RUN.match(lines[index])
        if match and len(match["indent"]) < column:
            end = _end(lines, index + 1, len(match["indent"]))
            others = [*lines[index + 1 : first], *lines[last:end]]
            is_whole = not any(line.strip() for line in others) and bool(_NO_TEXT.fullmatch(match["value"] or ""))
            return FoldedStep(index, match["indent"], is_whole)
        if lines[index].strip() and _column(lines[index]) < column:
            return None
    return None


def _end(lines: list[str], index: int, column: int) -> int:
    while index < len(lines) and (not lines[index].strip() or _column(lines[index]) > column):
        index += 1
    return index


def _column(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
