"""Fat binaries: host files with bundles of device code in a section of their own, and wrappers that point to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.elf_code import find_elf_code
from rocwheel.binary.bundles.pe_code import find_object_code, find_pe_code
from rocwheel.binary.bundles.sequence import iter_bundles
from rocwheel.binary.bundles.wrappers import CodeSection, Wrapper
from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.kind import is_bundle, is_coff_object, is_cut_elf, is_elf64
from rocwheel.binary.pe.header import is_pe64
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.binary.bundles.sequence import Bundle
    from rocwheel.core.reading import Data

__all__ = ["FatBinary", "is_host_file", "read_fat_binary"]


class FatBinary(msgspec.Struct, frozen=True):
    """The device code of a host file: the section with its bundles, and the wrappers that point to them."""

    name: str
    section: CodeSection
    wrappers: tuple[Wrapper, ...]

    @property
    def is_kpacked(self) -> bool:
        """Whether the device code was moved to a kpack archive, as wrappers say, or an empty section without any."""
        return any(wrapper.is_kpack for wrapper in self.wrappers) or (self.is_empty and not self.wrappers)

    @property
    def is_empty(self) -> bool:
        """Whether the section takes no bytes of the file."""
        return self.section.is_empty

    @property
    def starts(self) -> tuple[int, ...]:
        """Where wrappers point to, counted from the section's start, in rising order.

        Raises `DeviceCodeError` for a wrapper that points elsewhere.
        """
        return tuple(sorted({self.start_of(wrapper) for wrapper in self.wrappers}))

    def start_of(self, wrapper: Wrapper) -> int:
        """Return where ``wrapper`` points to, as `starts` does; raise `DeviceCodeError` where that is outside."""
        start, size = wrapper.pointer.target - self.section.address, self.section.size
        if not 0 <= start < size:
            raise DeviceCodeError(
                Place(self.name, wrapper.offset),
                f"a wrapper that points to {wrapper.leads_to}",
                expected=f"one in {self.section.name}, {count(size, 'byte')} from {self.section.address:#x}",
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
        return tuple(
            f"{self.name}: wrapper at {wrapper.offset:#x} does not point at a bundle (but at {wrapper.leads_to})"
            for wrapper in self.wrappers
            if wrapper.pointer.target not in addresses
        )


def is_host_file(data: Data) -> bool:
    """Return whether ``data`` is of a kind that device code can be in beside code for the host: ELF or PE, 64 bits."""
    return is_elf64(data) or is_pe64(data)


def read_fat_binary(data: Data, *, name: str) -> FatBinary | None:
    """Find the device code in ``data``; none in what is no 64-bit ELF, PE or object file, or has no section of it.

    Raises `ElfError` and `PeError` for damaged files, also for an ELF file that ends within its header, and
    `DeviceCodeError` for wrappers of an unknown kind.
    """
    if is_elf64(data) or is_cut_elf(data):
        found = find_elf_code(data, name=name)
    elif is_pe64(data):
        found = find_pe_code(data, name=name)
    elif is_coff_object(data):
        found = find_object_code(data, name=name)
    else:
        return None
    return FatBinary(name, *found) if found else None
