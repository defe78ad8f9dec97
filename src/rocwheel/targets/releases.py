"""Which targets each ROCm version supports, officially by AMD and unofficially in the libraries' code."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version

from rocwheel.errors import InputError
from rocwheel.targets.catalog import Release, load_catalog
from rocwheel.targets.errors import UnknownReleaseError

__all__ = ["LIVE", "official_span", "release_for"]

LIVE = "9999"
"""What Gentoo calls a build of the newest source; it supports what the newest recorded release does."""


def release_for(version: str, *, source: str = "ROCm version") -> Release:
    """Return the row that holds for a ROCm version: ``6.4`` is ``6.4.0``, and ``9999`` is the newest.

    Raises `InputError` for no version at all and `UnknownReleaseError` for a major version that is not recorded.
    """
    releases = load_catalog().releases
    if version == LIVE:
        return releases[-1]
    try:
        wanted = Version(version)
    except InvalidVersion as e:
        raise InputError(source, f"{version!r} is no version", expected="one such as 6.4 or 7.1.1") from e
    # A release candidate has the targets of its release.
    wanted = Version(wanted.base_version)
    rows = [row for row in releases if Version(row.since).major == wanted.major and Version(row.since) <= wanted]
    if not rows:
        majors = sorted({Version(row.since).major for row in releases})
        raise UnknownReleaseError(version, majors, source=source)
    return rows[-1]


def official_span(target: str) -> tuple[str, str]:
    """Return the versions at which a target first and last was official, ``""`` for never and for still being.

    The record begins with 5.0, so that version stands for itself and all before it; the last is the version
    from which the target no longer was official.
    """
    first = last = ""
    for row in load_catalog().releases:
        if target in row.official:
            first, last = first or row.since, ""
        elif first and not last:
            last = row.since
    return first, last
