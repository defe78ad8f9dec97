"""Whatever holds device code: a fat binary, a file of bundles, a code object; told apart by bytes, not by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.ar_archive import is_ar_archive, iter_ar_members
from rocwheel.binary.bundle_sequence import Bundle, is_bundle, iter_bundles
from rocwheel.binary.code_object import CodeObject, is_code_object, read_code_object
from rocwheel.binary.device_error import Place
from rocwheel.binary.fat_binary import FatBinary, read_fat_binary
from rocwheel.binary.offload_image import read_offload_images

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.target_id import TargetId

__all__ = ["DeviceCode", "device_targets", "read_device_code"]


class DeviceCode(msgspec.Struct, frozen=True):
    """A file with device code; of ``fat_binary`` and ``code_object``, at most one is set.

    ``section`` is the range of the bytes in which the bundles lie: offset and size.
    """

    name: str
    section: tuple[int, int]
    fat_binary: FatBinary | None = None
    code_object: CodeObject | None = None

    def view(self, data: memoryview) -> memoryview:
        """Return the bytes in which the bundles lie out of the file's."""
        return data[self.section[0] : sum(self.section)]

    def iter_bundles(self, data: memoryview) -> Iterator[Bundle]:
        """Give the bundles, whose ``start`` counts from the beginning of `view`; none for a code object by itself."""
        if self.code_object is not None:
            return iter(())
        if self.fat_binary is not None:
            return self.fat_binary.iter_bundles(data)
        return iter_bundles(data, name=self.name)


def read_device_code(data: memoryview, *, name: str) -> DeviceCode | None:
    """Find the device code in the bytes of the file ``name``; none when there is none.

    Raises `InputError` (`ElfError`, `DeviceCodeError`) for damaged files.
    """
    if is_bundle(data):
        return DeviceCode(name, (0, len(data)))
    if is_code_object(data):
        return DeviceCode(name, (0, 0), code_object=read_code_object(data, place=Place(name)))
    fat_binary = read_fat_binary(data, name=name)
    if fat_binary is None:
        return None
    size = 0 if fat_binary.is_kpacked else fat_binary.section.size
    return DeviceCode(name, (fat_binary.section.offset, size), fat_binary)


def device_targets(data: memoryview, *, name: str) -> tuple[TargetId, ...]:
    """Return every target that the file ``name`` has code for, each once, in order of appearance.

    In object files the images of both offload drivers count, in archives those of every member. Of compressed bundles
    only the head is decompressed. Raises `InputError` for damaged files.
    """
    return tuple(dict.fromkeys(_iter_targets(data, name)))


def _iter_targets(data: memoryview, name: str) -> Iterator[TargetId]:
    if is_ar_archive(data):
        for member in iter_ar_members(data, name=name):
            yield from _iter_targets(data[member.offset : member.offset + member.size], f"{name}({member.name})")
        return
    code = read_device_code(data, name=name)
    if code is None:
        yield from (image.target for image in read_offload_images(data, name=name) if image.target)
    elif code.code_object is not None:
        yield from (code.code_object.target,) if code.code_object.target else ()
    else:
        for bundle in code.iter_bundles(data):
            yield from bundle.targets
