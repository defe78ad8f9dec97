"""The reasons why a file keeps its device code, or can't get it back."""

from __future__ import annotations

from rocwheel.binary.code_objects import DeviceCodeError, NotTrimmableError, Place

__all__ = ["NoRoomForCodeError", "NotJoinableError", "NotSplittableError"]


class NotSplittableError(DeviceCodeError):
    """A file that is sound, but whose device code can't leave it."""

    @classmethod
    def because(cls, error: NotTrimmableError) -> NotSplittableError:
        """Return the error for a file that can't be trimmed either."""
        return cls(error.place, error.found, expected=error.expected)

    def __init__(self, place: Place, found: str, *, expected: str = "", remedy: str = "") -> None:
        super().__init__(
            place, found, expected=expected, remedy=remedy or "Leave its device code in it, and list it with the host."
        )


class NotJoinableError(DeviceCodeError):
    """A file that is sound, but that can't take device code back."""


class NoRoomForCodeError(NotJoinableError):
    """A file with less room for device code than there is, in bytes."""

    def __init__(self, place: Place, size: int, room: int) -> None:
        self.size, self.room = size, room
        found = f"{size} bytes of device code, but only {room} fit"
        super().__init__(place, found, expected="code that fits", remedy="Join fewer targets.")
