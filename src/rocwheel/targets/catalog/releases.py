"""Which targets each ROCm version supports, by Gentoo's lists and by AMD's."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from packaging.version import Version

from rocwheel.foundation.errors import InputError
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
    """Return the row of AMD's lists that holds for a ROCm version; raises as `release_for` does."""
    return _row_for(version, load_catalog().matrices, source)


def _row_for(version: str, table: Sequence[_Row], source: str) -> _Row:
    try:
        wanted = Version(version)
    except ValueError as e:
        raise InputError(source, f"{version!r} is not a version", expected="one such as 6.4 or 7.1.1") from e
    # A release candidate has the targets of its release.
    wanted = Version(wanted.base_version)
    rows = [row for row in table if Version(row.since).major == wanted.major and Version(row.since) <= wanted]
    if not rows:
        majors = sorted({Version(row.since).major for row in table})
        raise UnknownReleaseError(version, majors, source=source)
    return rows[-1]


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
