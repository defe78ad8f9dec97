"""Where device code is wrong: the file, the number of the bundle in it and the byte offset."""

from __future__ import annotations

import msgspec

from rocwheel.core.errors import InputError

__all__ = ["DeviceCodeError", "NoRoomError", "NotTrimmableError", "Place"]


class Place(msgspec.Struct, frozen=True):
    """A position in a file: ``offset`` in bytes, and the number of the bundle there, counted from 0."""

    name: str
    offset: int = 0
    bundle: int | None = None

    def __str__(self) -> str:
        if self.bundle is None:
            return f"{self.name}: offset {self.offset:#x}"
        return f"{self.name}: bundle {self.bundle} at offset {self.offset:#x}"


class DeviceCodeError(InputError):
    """Device code that can't be used; ``place`` says where it is."""

    def __init__(self, place: Place, found: str, *, expected: str = "", remedy: str = "") -> None:
        self.place = place
        super().__init__(str(place), found, expected=expected, remedy=remedy)

    @property
    def reason(self) -> str:
        """What was found and expected, for lists that name the file themselves and need no remedy."""
        return f"{self.found}, expected {self.expected}" if self.expected else self.found


class NoRoomError(DeviceCodeError):
    """A bundle that is sound, but has no room where it has to be."""


class NotTrimmableError(DeviceCodeError):
    """A file that is sound, but whose free space among device code can't be taken out."""

    def __init__(self, place: Place, found: str, *, expected: str) -> None:
        remedy = "The free space can't be taken out of it; in a wheel it costs next to nothing."
        super().__init__(place, found, expected=expected, remedy=remedy)
