"""Fat binaries: host ELF files with device code in ``.hip_fatbin``, found through ``.hipFatBinSegment``.

The latter is an array of wrappers of 24 bytes, one for each translation unit, as clang's ``CGCUDANV.cpp`` emits them:
u32 magic, u32 version (1), u64 pointer to a bundle, u64 zero. The magic is ``HIPF`` as a number, so ``FPIH`` as bytes;
``HIPK`` when the device code was moved to a kpack archive: the pointer is then to a marker, and the u32 behind it is
the index of the bundle in the archive. The pointer is right only after relocation: linkers may leave zeros in its
place. Several wrappers may point to one bundle (relocatable device code).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.sequence import iter_bundles
from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.elf.bytes import ElfBytes
from rocwheel.binary.elf.header import read_header
from rocwheel.binary.elf.relocations import Pointer, resolve_pointers
from rocwheel.binary.elf.sections import SHT_NOBITS, Section, read_section_table
from rocwheel.binary.kind import is_bundle, is_elf64
from rocwheel.foundation.counting import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.binary.bundles.sequence import Bundle
    from rocwheel.binary.elf.header import Header
    from rocwheel.foundation.files.file_view import Data

__all__ = ["FatBinary", "Wrapper", "pack_wrapper_head", "read_fat_binary"]

_BUNDLES = ".hip_fatbin"
_WRAPPERS = ".hipFatBinSegment"
_WRAPPER = struct.Struct("<II")
_WRAPPER_SIZE = 24
_POINTER_OFFSET = 8
"""Where in a wrapper the pointer to its bundle is."""
_INDEX_OFFSET = 16
_INDEX = struct.Struct("<I")
_HIPF = 0x48495046
_HIPK = 0x4B504948


class Wrapper(msgspec.Struct, frozen=True):
    """A wrapper: where it is in the file, whether its code is in a kpack archive, and where it points."""

    offset: int
    is_kpack: bool
    pointer: Pointer
    index: int = 0
    """The index of its bundle in the archive; without one it means nothing."""


class FatBinary(msgspec.Struct, frozen=True):
    """The device code of a host ELF file: the section with its bundles, and the wrappers that point to them."""

    name: str
    section: Section
    wrappers: tuple[Wrapper, ...]

    @property
    def is_kpacked(self) -> bool:
        """Whether the device code was moved to a kpack archive, as wrappers say, or an empty section without any."""
        return any(wrapper.is_kpack for wrapper in self.wrappers) or (self.is_empty and not self.wrappers)

    @property
    def is_empty(self) -> bool:
        """Whether the section takes no bytes of the file."""
        return self.section.type == SHT_NOBITS

    @property
    def starts(self) -> tuple[int, ...]:
        """Where wrappers point to, counted from the section's start, in rising order.

        Raises `DeviceCodeError` for a wrapper that points elsewhere.
        """
        return tuple(sorted({self.start_of(wrapper) for wrapper in self.wrappers}))

    def start_of(self, wrapper: Wrapper) -> int:
        """Return where ``wrapper`` points to, as `starts` does."""
        start = wrapper.pointer.target - self.section.address
        if not 0 <= start < self.section.size:
            raise DeviceCodeError(
                Place(self.name, wrapper.offset),
                f"a wrapper that points to address {wrapper.pointer.target:#x}",
                expected=f"one in .hip_fatbin, {count(self.section.size, 'byte')} from {self.section.address:#x}",
            )
        return start

    def view(self, data: Data) -> Data:
        """Return the section's bytes out of the file's."""
        return data[self.section.offset :][: 0 if self.is_empty else self.section.size]

    def iter_bundles(self, data: Data, *, strict: bool = True) -> Iterator[Bundle]:
        """Yield every bundle of the section; their ``start`` counts from the section's.

        Raises `DeviceCodeError` for damaged bundles, and for wrappers that point to none; the latter are left to
        `find_problems` when not ``strict``.
        """
        if self.is_kpacked:
            return
        view = self.view(data)
        starts = self.starts if strict else self._true_starts(view)
        missing = dict.fromkeys(starts)
        for bundle in iter_bundles(view, name=self.name, base=self.section.offset, starts=starts):
            missing.pop(bundle.start, None)
            yield bundle
        if missing and strict:
            start = self.section.offset + next(iter(missing))
            raise DeviceCodeError(Place(self.name, start), "a wrapper points here", expected="the start of a bundle")

    def _true_starts(self, view: Data) -> tuple[int, ...]:
        starts = {wrapper.pointer.target - self.section.address for wrapper in self.wrappers}
        return tuple(sorted(start for start in starts if 0 <= start < len(view) and is_bundle(view[start:])))

    def find_problems(self, offsets: Iterable[int]) -> tuple[str, ...]:
        """Return which wrappers, each with its place, point at none of the bundles at the file ``offsets``.

        A runtime would crash, or refuse the library, when that is loaded.
        """
        if self.is_kpacked:
            return ()
        addresses = {offset - self.section.offset + self.section.address for offset in offsets}
        pointers = [(wrapper.offset, wrapper.pointer.target) for wrapper in self.wrappers]
        astray = [(at, target) for at, target in pointers if target not in addresses]
        return tuple(
            f"{self.name}: wrapper at {at:#x} does not point at a bundle (but at address {target:#x})"
            for at, target in astray
        )


def pack_wrapper_head(*, is_kpack: bool) -> bytes:
    """Return the magic and version of a wrapper, whose code is in a kpack archive or in the file."""
    return _WRAPPER.pack(_HIPK if is_kpack else _HIPF, 1)


def read_fat_binary(data: Data, *, name: str) -> FatBinary | None:
    """Find the device code in ``data``; none when it is not a 64-bit ELF file, or has no ``.hip_fatbin``.

    Raises `ElfError` for damaged files, and `DeviceCodeError` for wrappers of an unknown kind.
    """
    if not is_elf64(data):
        return None
    source = ElfBytes(data, name)
    header = read_header(source)
    sections = read_section_table(source, header)
    by_name = {section.name: section for section in sections}
    if _BUNDLES not in by_name:
        return None
    holder = by_name.get(_WRAPPERS)
    wrappers = _read_wrappers(source, header, sections, holder) if holder and holder.type != SHT_NOBITS else ()
    return FatBinary(name, by_name[_BUNDLES], wrappers)


def _read_wrappers(
    source: ElfBytes, header: Header, sections: tuple[Section, ...], holder: Section
) -> tuple[Wrapper, ...]:
    starts = range(0, holder.size - holder.size % _WRAPPER_SIZE, _WRAPPER_SIZE)
    pointers = resolve_pointers(source, header, sections, holder, [start + _POINTER_OFFSET for start in starts])
    wrappers = []
    for start in starts:
        offset = holder.offset + start
        magic, version = source.unpack(_WRAPPER, offset, "a wrapper")
        if magic not in {_HIPF, _HIPK} or version != 1:
            raise DeviceCodeError(
                Place(source.name, offset),
                f"a fat binary wrapper of magic {magic:#x} and version {version}",
                expected=f"{_HIPF:#x} (HIPF) or {_HIPK:#x} (HIPK) and version 1",
            )
        (index,) = source.unpack(_INDEX, offset + _INDEX_OFFSET, "a wrapper")
        wrappers.append(Wrapper(offset, magic == _HIPK, pointers[start + _POINTER_OFFSET], index))
    return tuple(wrappers)
