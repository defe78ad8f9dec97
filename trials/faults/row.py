"""What came of a case: values that its process prints, and that others read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from trials.faults.attempt import Attempt

__all__ = ["DiskRow", "Found", "FuseRow", "RaceRow", "Row", "found_in"]


class Found(msgspec.Struct, frozen=True):
    """A run in which something was wrong."""

    fault: str
    call: str
    """The call that was met, and its path; empty where the command was killed."""
    status: int
    problems: tuple[str, ...]
    messages: str
    """What the command wrote to standard error."""


def found_in(one: Attempt) -> Found:
    """Return what was wrong in an attempt."""
    call = f"{one.hit.call} {one.hit.path}" if one.hit else ""
    return Found(one.fault, call, one.status, one.problems, one.messages)


class Row(msgspec.Struct, frozen=True):
    """What came of one case."""

    case: str
    calls: int
    """Of the command when nothing fails."""
    faults: int
    """How many were tried and met."""
    kills: int
    """At random moments."""
    tolerated: int
    """Faults after which the command had done its work all the same."""
    found: tuple[Found, ...]


class RaceRow(msgspec.Struct, frozen=True):
    """What came of commands that ran at the same time."""

    race: str
    rounds: int
    commands: int
    """In each round."""
    killed: int
    """In all rounds."""
    looks: int
    """How often a reader looked at what they write."""
    found: tuple[str, ...]


class DiskRow(msgspec.Struct, frozen=True):
    """What came of a case on disks that fill up or turn read-only."""

    case: str
    full: int
    """How often it failed on a full disk."""
    read_only: int
    """How often it failed as the disk turned read-only."""
    found: tuple[str, ...]


class FuseRow(msgspec.Struct, frozen=True):
    """What came of a case on disks of a FUSE server."""

    case: str
    operations: int
    """On the disk when nothing fails."""
    failed: int
    """How many were met that failed, or in which the disk died."""
    late: int
    """How many of them were writes that had ended well by then."""
    unusual: int
    """Runs on disks that lack something, give little at once, or list folders from behind."""
    tolerated: int
    """After how many of all these the command had done its work all the same."""
    found: tuple[Found, ...]
