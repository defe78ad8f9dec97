"""The pages RESULTS.md, which commands write between two marks, and the counts that they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_T = TypeVar("_T")


class Finding(msgspec.Struct, frozen=True):
    """A fault that a command found."""

    subject: str
    """In what: a harness, a case or a check."""
    found: str
    test: str
    """The test that holds it now: file and name."""


def read_findings(path: Path, subject: str) -> list[Finding]:
    """Return what a ``found.toml`` lists; ``subject`` is the key of what each was found in."""
    rows = msgspec.toml.decode(path.read_bytes(), type=dict[str, list[dict[str, str]]]).get("finding", [])
    return [Finding(row[subject], row["found"], row["test"]) for row in rows]


def finding_lines(subject: str, findings: Iterable[Finding]) -> list[str]:
    """Return the lines of the table of what was found, with its heading."""
    lines = ["What was found, and what holds it now:", "", f"| {subject} | found | held by |", "|---|---|---|"]
    return [*lines, *(f"| `{one.subject}` | {one.found} | `{one.test}` |" for one in findings)]


def write_part(page: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands between two marks of a page. Raises `ValueError` for a page that lacks one of them."""
    before, first, rest = page.read_text().partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        msg = f"{page}: has no part between {begin!r} and {end!r}"
        raise ValueError(msg)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def read_counts(path: Path, kind: type[_T]) -> dict[str, _T]:
    """Return what earlier runs counted, by name; nothing where there is no such JSON file yet."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, kind]) if path.exists() else {}  # type: ignore[valid-type]


def write_counts(path: Path, counts: Mapping[str, msgspec.Struct]) -> None:
    """Write counts as JSON, in order of their names."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(dict(sorted(counts.items())))) + b"\n")
