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

import struct

import msgspec

from rocwheel.binary.device_error import DeviceCodeError, Place
from rocwheel.binary.machine import machine_of, machine_of_number
from rocwheel.binary.target_id import TargetId

__all__ = ["CodeObject", "encode_flags", "is_code_object", "note_segments", "read_code_object"]

ELF_MAGIC = b"\x7fELF"
EM_AMDGPU = 224
ELFOSABI_AMDGPU_HSA = 64
FLAGS_OFFSET = 0x30

_HEADER = struct.Struct("<4s5B7xHHIQQQIHHHHHH")
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_PT_NOTE = 4
_SHT_NOTE = 7
_MACH = 0xFF
_XNACK_SHIFT = 8
_SRAMECC_SHIFT = 10
_SETTINGS = {1: None, 2: False, 3: True}
_GENERIC_SHIFT = 24
_FEATURES_OF_VERSION_4 = 2
_KNOWN_ABI_VERSIONS = 5


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

    @property
    def generic_version(self) -> int:
        """The version of a generic processor's instruction set; 0 for a specific processor."""
        return self.flags >> _GENERIC_SHIFT


def is_code_object(data: memoryview) -> bool:
    """Tell whether ``data`` starts with a 64-bit ELF header for AMDGPU and HSA, as the runtime tells it."""
    return (
        len(data) >= _HEADER.size
        and data[:4] == ELF_MAGIC
        and data[4] == 2
        and data[7] == ELFOSABI_AMDGPU_HSA
        and int.from_bytes(data[0x12:0x14], "little") == EM_AMDGPU
    )


def read_code_object(data: memoryview, *, place: Place) -> CodeObject:
    """Read the ELF header and find the notes of the code object that ``data`` holds.

    Raises `DeviceCodeError` for other files and for headers past the end.
    """
    if not is_code_object(data):
        raise DeviceCodeError(
            place, f"starts with {bytes(data[:20])!r}", expected="a code object: an ELF file for AMDGPU and HSA"
        )
    abi_version = data[8]
    flags = int.from_bytes(data[FLAGS_OFFSET : FLAGS_OFFSET + 4], "little")
    if abi_version >= _KNOWN_ABI_VERSIONS:
        raise DeviceCodeError(place, f"a code object of ABI version {abi_version}", expected="0 to 4")
    return CodeObject(_decode_flags(flags, abi_version), flags, abi_version, note_segments(data, place=place))


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
        if feature in machine.features:
            flags |= {None: 1, False: 2, True: 3}[target.features.get(feature)] << shift
    return flags


def note_segments(data: memoryview, *, place: Place) -> tuple[tuple[int, int], ...]:
    """Return offset and size of every note segment; of every note section when there are no program headers.

    Raises `DeviceCodeError` when headers or notes lie past the end of ``data``.
    """
    fields = _HEADER.unpack_from(data)
    program_offset, section_offset = fields[10:12]
    program_size, program_count, section_size, section_count = fields[14:18]
    if program_count:
        rows = _read_rows(data, _PROGRAM_HEADER, (program_offset, program_size, program_count), place)
        notes = [(row[2], row[5]) for row in rows if row[0] == _PT_NOTE]
    else:
        rows = _read_rows(data, _SECTION_HEADER, (section_offset, section_size, section_count), place)
        notes = [(row[4], row[5]) for row in rows if row[1] == _SHT_NOTE]
    for offset, size in notes:
        if offset + size > len(data):
            raise DeviceCodeError(
                place, f"its notes end at byte {offset + size}", expected=f"at most {len(data)}, where the data end"
            )
    return tuple(notes)


def _read_rows(
    data: memoryview, row: struct.Struct, table: tuple[int, int, int], place: Place
) -> list[tuple[int, ...]]:
    offset, size, count = table
    if count and (size != row.size or offset + size * count > len(data)):
        raise DeviceCodeError(
            place, f"its header table of {count} rows of {size} bytes at {offset:#x} doesn't fit its {len(data)} bytes"
        )
    return [row.unpack_from(data, offset + size * number) for number in range(count)]
