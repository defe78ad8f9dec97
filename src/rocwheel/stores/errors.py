"""What goes wrong with stores: each kind is a type, and says which place, what was found and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.foundation.errors import InputError, WorkError
from rocwheel.foundation.messages.counting import count

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "BrokenTransferError",
    "BusyError",
    "ClockError",
    "CredentialsError",
    "ForbiddenError",
    "MissingExtraError",
    "MissingFileError",
    "MissingStoreError",
    "OutdatedError",
    "PassingError",
    "RangesIgnoredError",
    "StoreError",
    "TakenError",
    "UnlistableError",
    "outdated",
    "taken",
]


class StoreError(WorkError):
    """Something that a store refused or could not do; ``source`` is the URL of the file or of the store."""


class MissingFileError(StoreError):
    """The store has no file of that name."""


class MissingStoreError(StoreError):
    """There is no such bucket, server or folder."""


class ForbiddenError(StoreError):
    """The store knows who asks, and doesn't allow it."""


class CredentialsError(StoreError):
    """There are no credentials, or the store doesn't accept them."""


class ClockError(StoreError):
    """The clock of this machine is too far from that of the store for its signatures to be valid."""


class PassingError(StoreError):
    """What often passes, so that the store is asked again: it was there at the last attempt, too."""

    attempts = 1
    """How often the store was asked."""

    def add_attempts(self, attempts: int, seconds: float) -> None:
        """Say how often the store was asked in all, and for how long."""
        self.found = f"{self.args[1]}, after {count(attempts, 'attempt')} in {seconds:.1f} s"
        self.attempts = attempts


class BusyError(PassingError):
    """The store was overloaded or out of order."""

    def __init__(
        self, source: Path | str, found: str, *, expected: str = "", remedy: str = "", retry_after: float = 0.0
    ) -> None:
        self.retry_after = retry_after
        """Seconds after which the store wants to be asked again; none (0) where it doesn't say."""
        super().__init__(source, found, expected=expected, remedy=remedy)


class BrokenTransferError(PassingError):
    """The connection ended in the middle of a file."""


class TakenError(StoreError):
    """A file that was to be created is there already."""


class OutdatedError(StoreError):
    """A file that was to be replaced is no longer what it was when it was read."""


class UnlistableError(StoreError):
    """The store can't say what it holds."""


class RangesIgnoredError(StoreError):
    """A web server sends whole files only."""


class MissingExtraError(InputError):
    """The library for stores is not installed."""


def taken(place: str) -> TakenError:
    """Return the error for a new file whose name another one has."""
    return TakenError(place, "is there already", remedy="Give the new file another name or version.")


def outdated(place: str) -> OutdatedError:
    """Return the error for a file that is another one than at first."""
    return OutdatedError(place, "was changed meanwhile by somebody else", remedy="Try again.")
