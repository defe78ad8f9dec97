"""What came of a case: values that its process prints, and that others read."""

from __future__ import annotations

import msgspec

__all__ = ["DiskRow", "Found", "RaceRow", "Row"]


class Found(msgspec.Struct, frozen=True):
    """A run in which something was wrong."""

    fault: str
    call: str
    """The call that was met, and its path; empty where the command was killed."""
    status: int
    problems: tuple[str, ...]
    messages: str
    """What the command wrote to standard error."""


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
