"""Which targets each ROCm version supports, by Gentoo's lists and by AMD's."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from packaging.version import Version

from rocwheel.core.errors import InputError
from rocwheel.targets.catalog.catalog import Matrix, Release, load_catalog
from rocwheel.targets.errors import UnknownReleaseError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LIVE", "matrix_for", "official_span", "release_for"]

_Row = TypeVar("_Row", Matrix, Release)

LIVE = "9999"
"""What Gentoo calls a build of the newest source; it supports what the newest recorded release supports."""


def release_for(version: str, *, source: str = "ROCm version") -> Release:
    """Return the row of Gentoo's lists that holds for a ROCm version: ``6.4`` is ``6.4.0``, and ``9999`` is the newest.

    Raises `InputError` for text that is not a version, and `UnknownReleaseError` for a major version without a record.
    """
    releases = load_catalog().releases
    return releases[-1] if version == LIVE else _row_for(version, releases, source)


def matrix_for(version: str, *, source: str = "ROCm version") -> Matrix:
    """Return the row of AMD's lists that holds for a ROCm version.

    Raises `InputError` for text that is not a version, and `UnknownReleaseError` for a minor version that nobody read.
    """
    matrices = load_catalog().matrices
    wanted = _parse(version, source)
    rows = _rows_until(wanted, matrices)
    if not rows or (wanted.major, wanted.minor) > _minor(rows[-1].through):
        raise UnknownReleaseError(version, _spans(matrices), source=source)
    return rows[-1]


def _row_for(version: str, table: Sequence[_Row], source: str) -> _Row:
    rows = _rows_until(_parse(version, source), table)
    if not rows:
        majors = sorted({Version(row.since).major for row in table})
        raise UnknownReleaseError(version, f"major version {', '.join(map(str, majors))}", source=source)
    return rows[-1]


def _parse(version: str, source: str) -> Version:
    try:
        # A release candidate has the targets of its release.
        return Version(Version(version).base_version)
    except ValueError as e:
        raise InputError(source, f"{version!r} is not a version", expected="one such as 6.4 or 7.1.1") from e


def _rows_until(wanted: Version, table: Sequence[_Row]) -> list[_Row]:
    return [row for row in table if Version(row.since).major == wanted.major and Version(row.since) <= wanted]


def _minor(version: str) -> tuple[int, int]:
    parsed = Version(version)
    return parsed.major, parsed.minor


def _spans(matrices: Sequence[Matrix]) -> str:
    """Return the versions that the rows hold for, adjoining rows as one span: ``6.0 to 6.4, 7.0 to 7.2``."""
    spans: list[tuple[str, str]] = []
    for row in matrices:
        major, minor = _minor(spans[-1][1]) if spans else (0, 0)
        adjoins = spans and _minor(row.since) in {(major, minor), (major, minor + 1)}
        spans = [*spans[:-1], (spans[-1][0], row.through)] if adjoins else [*spans, (row.since, row.through)]
    return ", ".join(f"{first} to {last}" for first, last in spans)


def official_span(target: str) -> tuple[str, str]:
    """Return the versions between which a target was official: the first, and the first that no longer has it.

    Both are ``""`` when it never was, the second when it still is. The record begins with 5.0, so that version stands
    for itself and all before it.
    """
    first = last = ""
    for row in load_catalog().releases:
        if target in row.official:
            first, last = first or row.since, ""
        elif first and not last:
            last = row.since
    return first, last
