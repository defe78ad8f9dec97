"""Reads fat binaries, which are ELF and Windows files with bundles in a section, and the wrappers of their device code.

A wrapper has 24 bytes, as emitted by clang's ``CGCUDANV.cpp``: u32 magic, u32 version (1), u64 pointer to a bundle, u64
zero. The magic number is the integer ``HIPF``, so the bytes are ``FPIH``. The magic is ``HIPK`` if the device code is
in a kpack archive. In that case, the pointer points to a marker, and the u32 after the pointer is the index of the
bundle in the archive. Several wrappers may point to one bundle (relocatable device code).

In ELF files, the pointer in a wrapper is correct only after relocation: linkers may leave zeros in the pointer's field.

In DLLs and programs, section names are truncated to 8 bytes. In object files, as in ELF files, the names are complete.
The pointer in a wrapper is stored in the wrapper itself. Base relocations only tell the loader to correct the pointer.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.bundles.sequence import iter_bundles
from rocwheel.binary.code_objects import CodePlace, DeviceCodeError
from rocwheel.binary.elf.header import SHT_NOBITS, SHT_NULL, ElfBytes, ElfSection, read_header, read_section_table
from rocwheel.binary.elf.relocations import Pointer, resolve_pointers
from rocwheel.binary.kind import is_bundle, is_coff_object, is_cut_elf, is_elf64
from rocwheel.binary.pe.header import PeBytes, PeSection, is_pe64, open_image
from rocwheel.binary.pe.object_file import ObjectFile, ObjectSection, find_targets, read_object_file
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from rocwheel.binary.bounded_bytes import BoundedBytes
    from rocwheel.binary.bundles.sequence import Bundle
    from rocwheel.binary.elf.header import Header
    from rocwheel.core.reading import Data


POINTER_OFFSET = 8
"""The offset of the pointer in a wrapper."""
INDEX_OFFSET = 16
_WRAPPER = struct.Struct("<II")
_WRAPPER_SIZE = 24
_INDEX = struct.Struct("<I")
_HIPF = 0x48495046
_HIPK = 0x4B504948


class CodeSection(msgspec.Struct, frozen=True):
    """A section of device code or markers, independent of the file format."""

    name: str
    address: int
    """The address that the linker chose; in a DLL, it doesn't include the image base."""
    offset: int
    size: int
    """The size in bytes. For a DLL, this is the size in the file. The size in memory is larger if code was removed."""
    is_empty: bool
    """Whether the section has no bytes in the file."""


class Wrapper(msgspec.Struct, frozen=True):
    """A wrapper: its offset in the file, whether its code is in a kpack archive, and its pointer."""

    offset: int
    is_kpack: bool
    pointer: Pointer
    index: int = 0
    """The index of the bundle in the archive; meaningless if the code isn't in an archive."""

    @property
    def leads_to(self) -> str:
        """A description of the pointer's target, for messages.

        A pointer that is below all addresses or outside all sections has no address.
        """
        target = self.pointer.target
        return f"address {target:#x}" if target >= 0 else "another section or nowhere"


def pack_wrapper_head(*, is_kpack: bool) -> bytes:
    """Return the magic and version for a wrapper whose code is in a kpack archive or in the file."""
    return _WRAPPER.pack(_HIPK if is_kpack else _HIPF, 1)


def wrapper_starts(size: int) -> range:
    """Return the offsets of the wrappers in a section of ``size`` bytes."""
    return range(0, size - size % _WRAPPER_SIZE, _WRAPPER_SIZE)


def read_wrapper(source: BoundedBytes, offset: int, pointer: Pointer) -> Wrapper:
    """Return the wrapper at a file offset; raise `DeviceCodeError` for an unknown kind."""
    magic, version = source.unpack(_WRAPPER, offset, "a wrapper")
    if magic not in {_HIPF, _HIPK} or version != 1:
        raise DeviceCodeError(
            CodePlace(source.name, offset),
            f"a fat binary wrapper with magic {magic:#x} and version {version}",
            expected=f"{_HIPF:#x} (HIPF) or {_HIPK:#x} (HIPK) and version 1",
        )
    (index,) = source.unpack(_INDEX, offset + INDEX_OFFSET, "a wrapper")
    return Wrapper(offset, magic == _HIPK, pointer, index)


_BUNDLES = ".hip_fatbin"
_WRAPPERS = ".hipFatBinSegment"


def find_elf_code(data: Data, *, name: str) -> tuple[CodeSection, tuple[Wrapper, ...]] | None:
    """Return the device code section of a 64-bit ELF file and its wrappers, or `None` if there is no such section.

    Raises `ElfError` for damaged files, and `DeviceCodeError` for wrappers of an unknown kind.
    """
    source = ElfBytes(data, name)
    header = read_header(source)
    sections = read_section_table(source, header)
    code = elf_code_section(sections)
    if code is None:
        return None
    holder = _last_named(sections, _WRAPPERS)
    wrappers = _read_wrappers(source, header, sections, holder) if holder and holder.has_bytes else ()
    return as_code_section(code), wrappers


def elf_code_section(sections: Iterable[ElfSection]) -> ElfSection | None:
    """Return the section that contains device code: if several sections have the name, the last of them."""
    return _last_named(sections, _BUNDLES)


def as_code_section(section: ElfSection) -> CodeSection:
    """Return a section of device code or markers in the form that doesn't depend on the file format."""
    return CodeSection(section.name, section.address, section.offset, section.size, section.type == SHT_NOBITS)


def _last_named(sections: Iterable[ElfSection], name: str) -> ElfSection | None:
    return {section.name: section for section in sections if section.type != SHT_NULL}.get(name)


def _read_wrappers(
    source: ElfBytes, header: Header, sections: tuple[ElfSection, ...], holder: ElfSection
) -> tuple[Wrapper, ...]:
    starts = wrapper_starts(holder.size)
    pointers = resolve_pointers(source, header, sections, holder, [start + POINTER_OFFSET for start in starts])
    return tuple(read_wrapper(source, holder.offset + start, pointers[start + POINTER_OFFSET]) for start in starts)


BUNDLE_NAMES: Final = frozenset({".hip_fat", ".hip_fatbin"})
_WRAPPER_NAMES: Final = frozenset({".hipFatB", ".hipFatBinSegment"})
PE_MARKER_NAMES: Final = frozenset({".kpackrf", ".rocm_kpack_ref"})
"""The names of the marker section; AMD's tool and rocwheel write the first name."""
_POINTER: Final = Struct("<Q")
_ELSEWHERE = -1
"""The value that replaces an offset in the device code section if a pointer's target isn't in that section."""


def find_pe_code(data: Data, *, name: str) -> tuple[CodeSection, tuple[Wrapper, ...]] | None:
    """Return the device code section of a DLL or program and its wrappers, or `None` if there is no such section.

    Raises `PeError` for damaged files, and `DeviceCodeError` for wrappers of an unknown kind.
    """
    source = PeBytes(data, name)
    image = open_image(source)
    code = pe_code_section(image.sections)
    if code is None:
        return None
    holder = _last_pe_section(image.sections, _WRAPPER_NAMES)
    starts = wrapper_starts(holder.loaded_size) if holder else range(0)
    offsets = [holder.offset + start for start in starts] if holder else []
    return _as_code_section(code), tuple(_wrapper(source, offset, image.header.image_base) for offset in offsets)


def find_object_code(data: Data, *, name: str) -> tuple[CodeSection, tuple[Wrapper, ...]] | None:
    """Return the device code section of a Windows object file and its wrappers, or `None` if there is no such section.

    A wrapper's pointer is an offset in its target section. Raises the same errors as `find_pe_code`.
    """
    source = PeBytes(data, name)
    file = read_object_file(source)
    by_name = {section.name: section for section in file.sections}
    code = next((by_name[one] for one in sorted(BUNDLE_NAMES) if one in by_name), None)
    if code is None:
        return None
    holder = next((by_name[one] for one in sorted(_WRAPPER_NAMES) if one in by_name), None)
    wrappers = _object_wrappers(source, file, holder, code) if holder else ()
    return CodeSection(code.name, 0, code.offset, code.size, not code.size), wrappers


def _object_wrappers(
    source: PeBytes, file: ObjectFile, holder: ObjectSection, code: ObjectSection
) -> tuple[Wrapper, ...]:
    starts = wrapper_starts(holder.size)
    leads = find_targets(source, file, holder, [start + POINTER_OFFSET for start in starts])
    targets = {at: target if section == code else _ELSEWHERE for at, (section, target) in leads.items()}
    return tuple(
        read_wrapper(source, holder.offset + start, Pointer(targets[start + POINTER_OFFSET], None)) for start in starts
    )


def find_pe_section(data: Data, names: Collection[str], *, name: str) -> CodeSection | None:
    """Return a section with one of ``names``, or `None` if there is no such section or it has no bytes in the file."""
    section = _last_pe_section(open_image(PeBytes(data, name)).sections, names)
    return _as_code_section(section) if section and section.file_size else None


def pe_code_section(sections: Iterable[PeSection]) -> PeSection | None:
    """Return the section that contains device code: if several sections have the name, the last of them."""
    return _last_pe_section(sections, BUNDLE_NAMES)


def _last_pe_section(sections: Iterable[PeSection], names: Collection[str]) -> PeSection | None:
    return next((section for section in reversed(tuple(sections)) if section.name in names), None)


def _as_code_section(section: PeSection) -> CodeSection:
    return CodeSection(section.name, section.address, section.offset, section.loaded_size, not section.file_size)


def _wrapper(source: PeBytes, offset: int, image_base: int) -> Wrapper:
    at = offset + POINTER_OFFSET
    (address,) = source.unpack(_POINTER, at, "a wrapper")
    return read_wrapper(source, offset, Pointer(address - image_base, at))


class FatBinary(msgspec.Struct, frozen=True):
    """The device code of a host file: the section with its bundles, and the wrappers that point to them."""

    name: str
    section: CodeSection
    wrappers: tuple[Wrapper, ...]

    @property
    def is_kpacked(self) -> bool:
        """Whether the device code is in a kpack archive, indicated by wrappers or an empty section without wrappers."""
        return any(wrapper.is_kpack for wrapper in self.wrappers) or (self.is_empty and not self.wrappers)

    @property
    def is_empty(self) -> bool:
        """Whether the section has no bytes in the file."""
        return self.section.is_empty

    @property
    def starts(self) -> tuple[int, ...]:
        """The targets of the wrappers, relative to the start of the section, in ascending order.

        Raises `DeviceCodeError` for a wrapper that points outside the section.
        """
        return tuple(sorted({self.start_of(wrapper) for wrapper in self.wrappers}))

    def start_of(self, wrapper: Wrapper) -> int:
        """Return the target of ``wrapper``, relative to the start of the section.

        Raises `DeviceCodeError` if the target is outside the section.
        """
        start, size = wrapper.pointer.target - self.section.address, self.section.size
        if not 0 <= start < size:
            raise DeviceCodeError(
                CodePlace(self.name, wrapper.offset),
                f"a wrapper that points to {wrapper.leads_to}",
                expected=(
                    f"an address in {self.section.name}, which has {count(size, 'byte')} at {self.section.address:#x}"
                ),
            )
        return start

    def view(self, data: Data) -> Data:
        """Return the bytes of the section, as a part of ``data``, which is the entire file."""
        return data[self.section.offset :][: 0 if self.is_empty else self.section.size]

    def iter_bundles(self, data: Data, *, strict: bool = True) -> Iterator[Bundle]:
        """Yield every bundle in the section; each bundle's ``start`` is relative to the start of the section.

        Raises `DeviceCodeError` for damaged bundles. If ``strict``, also raises it for wrappers that don't point to a
        bundle; otherwise, `find_problems` reports those wrappers.
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
            raise DeviceCodeError(
                CodePlace(self.name, start), "a wrapper points here", expected="the start of a bundle"
            )

    def _true_starts(self, view: Data) -> tuple[int, ...]:
        starts = {wrapper.pointer.target - self.section.address for wrapper in self.wrappers}
        return tuple(sorted(start for start in starts if 0 <= start < len(view) and is_bundle(view[start:])))

    def find_problems(self, offsets: Iterable[int]) -> tuple[str, ...]:
        """Describe each wrapper that doesn't point to one of the bundles at the file ``offsets``.

        A runtime that loads such a library crashes or rejects the library.
        """
        if self.is_kpacked:
            return ()
        addresses = {offset - self.section.offset + self.section.address for offset in offsets}
        return tuple(
            f"{self.name}: the wrapper at {wrapper.offset:#x} points to {wrapper.leads_to}, not to a bundle"
            for wrapper in self.wrappers
            if wrapper.pointer.target not in addresses
        )


def is_host_file(data: Data) -> bool:
    """Return whether ``data`` is a kind of file that can contain both host code and device code: 64-bit ELF or PE."""
    return is_elf64(data) or is_pe64(data)


def read_fat_binary(data: Data, *, name: str) -> FatBinary | None:
    """Return the device code in ``data``, or `None` if it isn't a 64-bit ELF, PE, or object file with a code section.

    Raises `ElfError` and `PeError` for damaged files, including ELF files that end inside the header. Raises
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
