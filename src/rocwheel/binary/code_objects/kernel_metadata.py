"""The metadata notes of code objects: MessagePack after https://llvm.org/docs/AMDGPUUsage.html#code-object-metadata.

Metadata has the owner ``AMDGPU`` and the kind 32 from code object version 3 on. There may be several
notes, one for each translation unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.binary.code_objects.code_object import is_code_object, read_code_object
from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.elf.bytes import ElfBytes
from rocwheel.binary.elf.dynamic import read_dynamic_file
from rocwheel.binary.elf.header import read_header, read_segments
from rocwheel.binary.elf.notes import iter_notes
from rocwheel.binary.elf.symbols import SymbolNames, SymbolReader
from rocwheel.core.reading import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.code_objects.code_object import CodeObject
    from rocwheel.core.reading import Data

__all__ = [
    "TARGET_KEY",
    "VERSION_KEY",
    "Kernel",
    "KernelArgument",
    "Metadata",
    "count_kernels",
    "decode_note",
    "iter_metadata_notes",
    "kernel_names",
    "kernel_symbols",
    "read_metadata",
]

NT_AMDGPU_METADATA = 32
_OWNER = b"AMDGPU\0"
TARGET_KEY = "amdhsa.target"
VERSION_KEY = "amdhsa.version"
_VERSION_OF_SYMBOLS = 2
_SYMBOL_TYPE, STT_AMDGPU_HSA_KERNEL = 0xF, 10


class KernelArgument(msgspec.Struct, frozen=True, kw_only=True):
    """An argument of a kernel: where it lies among the arguments and what kind of value it is; sizes in bytes."""

    offset: int = msgspec.field(name=".offset")
    size: int = msgspec.field(name=".size")
    value_kind: str = msgspec.field(name=".value_kind")
    name: str = msgspec.field(name=".name", default="")
    type_name: str = msgspec.field(name=".type_name", default="")
    address_space: str = msgspec.field(name=".address_space", default="")


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel: its name, the symbol of its descriptor, and its needs as far as they are stated; sizes in bytes."""

    name: str = msgspec.field(name=".name")
    symbol: str = msgspec.field(name=".symbol", default="")
    arguments: tuple[KernelArgument, ...] = msgspec.field(name=".args", default=())
    kernarg_segment_size: int | None = msgspec.field(name=".kernarg_segment_size", default=None)
    group_segment_fixed_size: int | None = msgspec.field(name=".group_segment_fixed_size", default=None)
    private_segment_fixed_size: int | None = msgspec.field(name=".private_segment_fixed_size", default=None)
    wavefront_size: int | None = msgspec.field(name=".wavefront_size", default=None)
    sgpr_count: int | None = msgspec.field(name=".sgpr_count", default=None)
    vgpr_count: int | None = msgspec.field(name=".vgpr_count", default=None)
    max_flat_workgroup_size: int | None = msgspec.field(name=".max_flat_workgroup_size", default=None)
    agpr_count: int | None = msgspec.field(name=".agpr_count", default=None)
    """Only on processors with accumulation registers (gfx908 and later)."""
    sgpr_spill_count: int | None = msgspec.field(name=".sgpr_spill_count", default=None)
    vgpr_spill_count: int | None = msgspec.field(name=".vgpr_spill_count", default=None)
    uses_dynamic_stack: bool = msgspec.field(name=".uses_dynamic_stack", default=False)


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """The content of one metadata note. Version 3 code objects, and assembled ones, may have no target."""

    version: tuple[int, int] = msgspec.field(name=VERSION_KEY)
    target: str = msgspec.field(name=TARGET_KEY, default="")
    kernels: tuple[Kernel, ...] = msgspec.field(name="amdhsa.kernels", default=())


class _KernelCount(msgspec.Struct):
    kernels: list[msgspec.Raw] = msgspec.field(name="amdhsa.kernels", default_factory=list)


_METADATA = msgspec.msgpack.Decoder(Metadata)
_COUNT = msgspec.msgpack.Decoder(_KernelCount)


def read_metadata(data: Data, code: CodeObject, *, place: Place) -> tuple[Metadata, ...]:
    """Return every metadata note of the code object ``code``, whose bytes are ``data``.

    Raises `ElfError` for notes that run past their segment and `DeviceCodeError` for notes that are not MessagePack of
    this shape.
    """
    return tuple(
        decode_note(_METADATA, data[start:stop], place) for start, stop in iter_metadata_notes(data, code, place)
    )


def count_kernels(data: Data, code: CodeObject, *, place: Place) -> int | None:
    """Return the number of kernels that the notes list; in code object version 2, of the symbols that are kernels.

    None for one of version 2 that isn't linked. Raises `DeviceCodeError` as `read_metadata` does.
    """
    if code.version == _VERSION_OF_SYMBOLS:
        names = kernel_symbols(data, place=place)
        return None if names is None else len(names)
    notes = iter_metadata_notes(data, code, place)
    return sum(len(decode_note(_COUNT, data[start:stop], place).kernels) for start, stop in notes)


def kernel_symbols(data: Data, *, place: Place) -> tuple[str, ...] | None:
    """Return the names of the kernels that the loader of code object version 2 finds; none for one that isn't linked.

    The notes of that version are YAML, of another owner and kind. Raises `ElfError` for damaged files.
    """
    source = ElfBytes(data, str(place))
    segments = read_segments(source, read_header(source))
    file = read_dynamic_file(source, segments)
    if file is None:
        return None
    names = SymbolNames(file)
    kernels = (name for name, info, *_ in SymbolReader(file).symbols() if info & _SYMBOL_TYPE == STT_AMDGPU_HSA_KERNEL)
    return tuple(names.at(name).decode("utf-8", "backslashreplace") for name in kernels)


def kernel_names(data: Data, *, place: Place) -> frozenset[str]:
    """Return the names of the kernels in the code object ``data``, of any version; none in bytes of another kind.

    Raises `DeviceCodeError` and `ElfError` as `read_metadata` does.
    """
    if not is_code_object(data):
        return frozenset()
    code = read_code_object(data, place=place)
    if code.version == _VERSION_OF_SYMBOLS:
        return frozenset(kernel_symbols(data, place=place) or ())
    return frozenset(kernel.name for note in read_metadata(data, code, place=place) for kernel in note.kernels)


def decode_note(decoder: msgspec.msgpack.Decoder[Any], note: Data, place: Place) -> Any:
    """Decode the description of a metadata note; raises `DeviceCodeError` when it is not what ``decoder`` is for.

    That includes notes that are nested more deeply than Python recurses.
    """
    try:
        return decoder.decode(load(note))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise DeviceCodeError(place, f"a metadata note that is not MessagePack of a code object ({e})") from e


def iter_metadata_notes(data: Data, code: CodeObject, place: Place) -> Iterator[tuple[int, int]]:
    """Yield start and end of the description of every metadata note, in bytes of the code object.

    Raises `ElfError` for notes that run past their segment.
    """
    source = ElfBytes(data, str(place))
    for offset, size in code.notes:
        for note in iter_notes(source, offset, offset + size):
            if note.kind == NT_AMDGPU_METADATA and note.name == _OWNER:
                yield note.offset, note.offset + note.size
