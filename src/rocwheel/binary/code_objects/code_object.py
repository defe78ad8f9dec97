"""AMDGPU code objects: ELF files for one target, after https://llvm.org/docs/AMDGPUUsage.html#code-object.

========  ====================================================================================
offset    field
========  ====================================================================================
7         OS ABI, 64 for HSA
8         ABI version: 0 to 4 for code object version 2 to 6
0x12      machine, 224
0x30      ``e_flags``: bits 0-7 processor, 8-9 xnack, 10-11 sramecc (0 unsupported, 1 any, 2 off,
          3 on), 24-31 generic version (version 6). Before version 4, bit 8 is xnack, 9 sramecc
========  ====================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.code_objects.machine import machine_of, machine_of_number
from rocwheel.binary.code_objects.target_id import TargetId
from rocwheel.binary.elf.bytes import ElfBytes, ElfError
from rocwheel.binary.elf.header import E_MACHINE, EM_AMDGPU, HEADER_SIZE, PT_NOTE, read_header, read_segments
from rocwheel.binary.elf.sections import SHT_NOTE, read_section_table
from rocwheel.binary.kind import ELF_MAGIC

if TYPE_CHECKING:
    from rocwheel.binary.elf.header import Header
    from rocwheel.core.reading import Data

__all__ = [
    "FIRST_WITH_OPEN_FEATURES",
    "CodeObject",
    "LoadedHeader",
    "encode_flags",
    "header_processor",
    "is_code_object",
    "read_code_object",
    "read_loaded_header",
]

_IDENTIFICATION = ELF_MAGIC + b"\x02"
_ABI_AT, _ABI_HSA = 7, 64
_ABI_VERSION_AT = 8
_MACHINE = EM_AMDGPU.to_bytes(2, "little")
_MACH = 0xFF
_FLAGS_AT = 0x30
_XNACK_SHIFT = 8
_SRAMECC_SHIFT = 10
_SETTINGS = {1: None, 2: False, 3: True}
_GENERIC_SHIFT = 24
_FEATURES_OF_VERSION_4 = 2
_KNOWN_ABI_VERSIONS = 5
FIRST_WITH_OPEN_FEATURES = 4
"""The code object version from which on flags may leave a feature open; before, they are on or off."""
_MOST_OVERLAP = 2
"""Times the size of the file: segments may be parts of others, but thousands of them may also be the same notes."""


class CodeObject(msgspec.Struct, frozen=True):
    """The facts in the ELF header of a code object."""

    target: TargetId | None
    """From ``e_flags``; none when they name no processor, or one that is not known."""
    flags: int
    abi_version: int
    notes: tuple[tuple[int, int], ...]
    """Offset and size of each note segment (of each note section, in a relocatable code object), in bytes."""

    @property
    def version(self) -> int:
        """The code object version, as compilers name it (``-mcode-object-version``)."""
        return self.abi_version + 2


def is_code_object(data: Data) -> bool:
    """Return whether ``data`` starts with a 64-bit ELF header for AMDGPU and HSA, as the runtime decides it."""
    head = bytes(data[:HEADER_SIZE])
    return (
        len(head) == HEADER_SIZE
        and head.startswith(_IDENTIFICATION)
        and head[_ABI_AT] == _ABI_HSA
        and head.startswith(_MACHINE, E_MACHINE)
    )


def read_code_object(data: Data, *, place: Place) -> CodeObject:
    """Read the ELF header and find the notes of the code object that ``data`` holds.

    Raises `DeviceCodeError` for other files, and `ElfError` for headers and notes past the end or within one another.
    """
    if not is_code_object(data):
        raise DeviceCodeError(
            place, f"starts with {bytes(data[:20])!r}", expected="a code object: an ELF file for AMDGPU and HSA"
        )
    source = ElfBytes(data, str(place))
    header = read_header(source)
    if header.abi_version >= _KNOWN_ABI_VERSIONS:
        raise DeviceCodeError(place, f"a code object of ABI version {header.abi_version}", expected="0 to 4")
    target = _decode_flags(header.flags, header.abi_version)
    return CodeObject(target, header.flags, header.abi_version, _find_notes(source, header))


def header_processor(head: bytes) -> str | None:
    """Return the processor of a code object of which only the beginning is at hand.

    None for other files, and where the header names a processor that is not known.
    """
    if not is_code_object(memoryview(head)):
        return None
    machine = machine_of_number(int.from_bytes(head[_FLAGS_AT : _FLAGS_AT + 4], "little") & _MACH)
    return machine.processor if machine else None


class LoadedHeader(NamedTuple):
    """What a runtime takes from the ELF header of a code object that it loads."""

    version: int
    target: TargetId | None
    """None when the flags name no processor, or one that is not known."""


def read_loaded_header(head: bytes) -> LoadedHeader | None:
    """Return what a runtime takes from the header of a code object; none for other files.

    Before version 4 nothing is open: a feature that the flags don't set is off. Version 2 has its flag for XNACK where
    later ones have the processor.
    """
    if not is_code_object(memoryview(head)):
        return None
    flags, abi_version = int.from_bytes(head[_FLAGS_AT : _FLAGS_AT + 4], "little"), head[_ABI_VERSION_AT]
    target, machine = _decode_flags(flags, abi_version), machine_of_number(flags & _MACH)
    if abi_version < _FEATURES_OF_VERSION_4 and machine is not None:
        is_on = {"xnack": bool(flags & 1)} if abi_version == 0 else {"sramecc": bool(flags & 0x200)}
        settings = {"xnack": bool(flags & 0x100), **is_on}
        target = TargetId(machine.processor, **{name: settings[name] for name in settings if name in machine.features})
    return LoadedHeader(abi_version + 2, target)


def _decode_flags(flags: int, abi_version: int) -> TargetId | None:
    machine = machine_of_number(flags & _MACH)
    if machine is None:
        return None
    if abi_version >= _FEATURES_OF_VERSION_4:
        sramecc = _SETTINGS.get(flags >> _SRAMECC_SHIFT & 3)
        return TargetId(machine.processor, sramecc=sramecc, xnack=_SETTINGS.get(flags >> _XNACK_SHIFT & 3))
    return TargetId(machine.processor, sramecc=True if flags & 0x200 else None, xnack=True if flags & 0x100 else None)


def encode_flags(target: TargetId, *, place: Place) -> int:
    """Return the ``e_flags`` that a compiler writes for ``target``, from code object version 4 on.

    Raises `DeviceCodeError` for an unknown processor and for a feature that it doesn't have.
    """
    machine = machine_of(target.processor)
    if machine is None:
        raise DeviceCodeError(place, f"no machine number is known for {target.processor!r}")
    if unsupported := sorted(set(target.features) - machine.features):
        raise DeviceCodeError(place, f"{target.processor} doesn't have the feature {unsupported[0]}")
    flags = machine.mach | target.is_generic << _GENERIC_SHIFT
    for feature, shift in (("xnack", _XNACK_SHIFT), ("sramecc", _SRAMECC_SHIFT)):
        if feature in machine.features | machine.any:
            flags |= {None: 1, False: 2, True: 3}[target.features.get(feature)] << shift
    return flags


def _find_notes(source: ElfBytes, header: Header) -> tuple[tuple[int, int], ...]:
    """Return offset and size of every note segment; of every note section when there are no program headers."""
    segments = read_segments(source, header)
    notes = [(segment.offset, segment.file_size) for segment in segments if segment.type == PT_NOTE]
    if not segments:
        sections = read_section_table(source, header)
        notes = [(section.offset, section.size) for section in sections if section.type == SHT_NOTE]
    for offset, size in notes:
        source.require(offset, size, "its notes")
    if sum(size for _, size in notes) > _MOST_OVERLAP * source.size:
        raise ElfError(source.name, f"notes of more than {_MOST_OVERLAP * source.size} bytes", expected="them apart")
    return tuple(notes)
