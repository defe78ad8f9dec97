"""Where the bundles of a file are that can be edited in place: in the file itself, or in members of an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.device_code import DeviceCode, iter_ar_members, read_device_code, read_offload_images
from rocwheel.binary.bundles.storage import BundleChange, BundleSlot
from rocwheel.binary.kind import is_ar_archive
from rocwheel.core.errors import InputError
from rocwheel.core.patch import Replacement
from rocwheel.core.reading import Data
from rocwheel.device.editing.bundle import list_slots
from rocwheel.device.editing.patch import patched_size

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["BundlePlaces", "UnlinkedCodeError", "list_places"]


class UnlinkedCodeError(InputError):
    """Device code that the linker has not made code objects of yet, so that there are no bundles to edit."""

    def __init__(self, name: str) -> None:
        super().__init__(
            name,
            "device code that isn't linked yet",
            expected="bundles, as in shared libraries, programs, and objects compiled without -fgpu-rdc",
            remedy="Compile it with --offload-arch for the targets, or link it and edit the result.",
        )


class BundlePlaces(msgspec.Struct, frozen=True):
    """The bundles in ``data``: a file, or the member of an archive at the offset ``base``."""

    base: int
    data: Data
    code: DeviceCode
    slots: tuple[BundleSlot, ...]

    def replacements(self, change: BundleChange) -> Iterator[Replacement]:
        """Yield the replacements of a change, placed in the file."""
        for new in change.replacements:
            yield Replacement(new.start + self.base, new.stop + self.base, new.data)

    def patched_size(self, last: BundleChange | None) -> int:
        """Return the size of ``data`` after its ``last`` change."""
        return patched_size(self.data, self.code, self.slots, last)


def list_places(data: Data, *, name: str) -> tuple[BundlePlaces, ...]:
    """Find all bundles of the file ``name``; nothing for code objects and for files without device code.

    Raises `UnlinkedCodeError` when some of the code is in images of object files, and `InputError` as
    `read_device_code` does.
    """
    if not is_ar_archive(data):
        return _places(data, 0, name)
    members = tuple(iter_ar_members(data, name=name))
    return tuple(
        place
        for member in members
        for place in _member_places(data[member.offset :][: member.size], member.offset, f"{name}({member.name})")
    )


def _places(data: Data, base: int, name: str) -> tuple[BundlePlaces, ...]:
    code = read_device_code(data, name=name)
    if code is None and any(image.target for image in read_offload_images(data, name=name)):
        raise UnlinkedCodeError(name)
    slots = list_slots(data, code) if code else ()
    return (BundlePlaces(base, data, code, slots),) if code and slots else ()


def _member_places(data: Data, base: int, name: str) -> tuple[BundlePlaces, ...]:
    """Find the bundles of a member, which has to keep its size."""
    places = _places(data, base, name)
    if any(place.code.fat_binary is None for place in places):
        raise InputError(name, "a file of bundles in an archive", expected="object files", remedy="Take it out first.")
    return places
