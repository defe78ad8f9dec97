"""What came of comparing many files."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec

__all__ = ["Difference", "Explanation", "Row", "is_explained", "read_explanations", "unused_explanations"]

_EXPLAINED = Path(__file__).with_name("explained.toml")


class Difference(msgspec.Struct, frozen=True, order=True):
    """Something that rocwheel and another tool say differently of a file, or a finding that was not expected."""

    check: str
    file: str
    """A path, or a wheel and a path in it with ``!`` between."""
    tool: str
    fact: str
    text: str
    """Both answers, shortened."""


class Row(msgspec.Struct, frozen=True):
    """What came of one check."""

    check: str
    files: int
    answers: int = 0
    """Files times tools, or loads: how often something was compared."""
    differences: tuple[Difference, ...] = ()


class Explanation(msgspec.Struct, frozen=True):
    """Why differences of a kind are none of rocwheel's faults."""

    check: str
    tool: str
    why: str
    fact: str = "*"
    file: str = "*"
    """A pattern, as of a shell."""
    says: str = ""
    """Has to be in the text of the difference."""

    def explains(self, one: Difference) -> bool:
        """Return whether a difference is of this kind."""
        pairs = ((one.check, self.check), (one.tool, self.tool), (one.fact, self.fact), (one.file, self.file))
        return self.says in one.text and all(fnmatchcase(text, pattern) for text, pattern in pairs)


class _Explanations(msgspec.Struct, frozen=True):
    differences: tuple[Explanation, ...] = msgspec.field(name="difference", default=())


@cache
def read_explanations() -> tuple[Explanation, ...]:
    """Return the kinds of differences that were looked at and explained."""
    return msgspec.toml.decode(_EXPLAINED.read_bytes(), type=_Explanations).differences


def is_explained(one: Difference) -> bool:
    """Return whether a difference was looked at and explained."""
    return any(known.explains(one) for known in read_explanations())


def unused_explanations(row: Row) -> tuple[Explanation, ...]:
    """Return the explanations for a check that explain none of its differences: what they say may be true no more."""
    known = (one for one in read_explanations() if one.check == row.check)
    return tuple(one for one in known if not any(map(one.explains, row.differences)))
