"""Device code in files of any kind, which are recognised by their bytes, not by their names.

Fat binaries, files of bundles, code objects by themselves, object files that aren't linked yet, static libraries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.ar_archive import iter_ar_members
from rocwheel.binary.bundles.fat_binary import FatBinary, read_fat_binary
from rocwheel.binary.bundles.plain import BundleEntry, OffloadBundle
from rocwheel.binary.bundles.sequence import Bundle, iter_bundles
from rocwheel.binary.bundles.unlinked import read_offload_images
from rocwheel.binary.code_objects.code_object import CodeObject, is_code_object, read_code_object
from rocwheel.binary.code_objects.errors import Place
from rocwheel.binary.code_objects.target_id import BundleEntryId
from rocwheel.binary.kind import is_ar_archive, is_bundle
from rocwheel.core.reading import Data

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.code_objects.target_id import TargetId

__all__ = ["CodeSource", "DeviceCode", "device_targets", "iter_code_sources", "read_device_code"]

_TRIPLE = "amdgcn-amd-amdhsa"


class DeviceCode(msgspec.Struct, frozen=True):
    """A file with device code; of ``fat_binary`` and ``code_object``, at most one is set.

    ``section`` is the range of the bytes in which the bundles lie: offset and size.
    """

    name: str
    section: tuple[int, int]
    fat_binary: FatBinary | None = None
    code_object: CodeObject | None = None

    def view(self, data: Data) -> Data:
        """Return the bytes in which the bundles lie out of the file's."""
        return data[self.section[0] : sum(self.section)]

    def iter_bundles(self, data: Data, *, strict: bool = True) -> Iterator[Bundle]:
        """Yield the bundles, whose ``start`` counts from the beginning of `view`; none for a code object by itself.

        Raises `DeviceCodeError` for damaged bundles and, when ``strict``, for wrappers that point to
        none.
        """
        if self.code_object is not None:
            return iter(())
        if self.fat_binary is not None:
            return self.fat_binary.iter_bundles(data, strict=strict)
        return iter_bundles(data, name=self.name)


def read_device_code(data: Data, *, name: str) -> DeviceCode | None:
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
    size = 0 if fat_binary.is_kpacked or fat_binary.is_empty else fat_binary.section.size
    return DeviceCode(name, (fat_binary.section.offset, size), fat_binary)


class CodeSource(msgspec.Struct, frozen=True):
    """A bundle and the bytes it lies in; or what is taken for a plain bundle, its entries being where they are.

    The latter are the images of an object file that isn't linked yet, and a code object by itself.
    """

    view: Data
    bundle: Bundle


def iter_code_sources(data: Data, *, name: str) -> Iterator[CodeSource]:
    """Yield everything in the file ``name`` that code for AMD GPUs can be taken from, in file order.

    In object files the images of both offload drivers count, in archives those of every member. Of compressed bundles
    only the head is decompressed. Raises `InputError` for damaged files.
    """
    return _iter_code_sources(data, name, 0)


def _iter_code_sources(data: Data, name: str, depth: int) -> Iterator[CodeSource]:
    """Yield as `iter_code_sources` does, from a file that is in so many archives."""
    if is_ar_archive(data):
        for member in iter_ar_members(data, name=name, depth=depth):
            content = data[member.offset : member.offset + member.size]
            yield from _iter_code_sources(content, f"{name}({member.name})", depth + 1)
        return
    code = read_device_code(data, name=name)
    if code is None or code.code_object is not None:
        entries = _image_entries(data, name) if code is None else _sole_entry(code, len(data))
        if entries:
            yield CodeSource(data, Bundle(Place(name, entries[0].offset), 0, len(data), OffloadBundle(entries, 0)))
        return
    for bundle in code.iter_bundles(data):
        yield CodeSource(code.view(data), bundle)


def _image_entries(data: Data, name: str) -> tuple[BundleEntry, ...]:
    return tuple(
        BundleEntry(
            BundleEntryId(image.kind, image.triple, image.target),
            f"{image.kind}-{image.triple}-{image.arch}",
            image.offset,
            image.size,
        )
        for image in read_offload_images(data, name=name)
        if image.target is not None
    )


def _sole_entry(code: DeviceCode, size: int) -> tuple[BundleEntry, ...]:
    target = code.code_object.target if code.code_object else None
    return (BundleEntry(BundleEntryId("", _TRIPLE, target), str(target), 0, size),) if target else ()


def device_targets(data: Data, *, name: str) -> tuple[TargetId, ...]:
    """Return every target that the file ``name`` has code for, each once, in order of appearance.

    Raises `InputError` as `iter_code_sources` does.
    """
    sources = iter_code_sources(data, name=name)
    return tuple(dict.fromkeys(target for source in sources for target in source.bundle.targets))
