"""Reads the metadata notes of code objects, which list the kernels, their arguments, and the target.

Since code object version 3, metadata notes have the owner ``AMDGPU`` and the kind 32. There can be several notes, one
for each translation unit.

Nothing in a code object may move, so an edited note must not change its size. Notes are MessagePack, which has several
encodings for the same value. If the new target name is shorter, longer encodings are used for its length and for the
two numbers in ``amdhsa.version``. See https://github.com/msgpack/msgpack/blob/master/spec.md.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.binary.code_objects import CodePlace, DeviceCodeError, is_code_object, read_code_object, retargeted_triple
from rocwheel.binary.elf.dynamic import read_dynamic_file
from rocwheel.binary.elf.facts import iter_notes
from rocwheel.binary.elf.header import ElfBytes, read_header, read_segments
from rocwheel.binary.elf.symbols import SymbolNames, SymbolReader
from rocwheel.core.reading import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.code_objects import CodeObject, TargetId
    from rocwheel.core.reading import Data


NT_AMDGPU_METADATA = 32
_OWNER = b"AMDGPU\0"
TARGET_KEY = "amdhsa.target"
VERSION_KEY = "amdhsa.version"
_VERSION_OF_SYMBOLS = 2
_SYMBOL_TYPE, STT_AMDGPU_HSA_KERNEL = 0xF, 10


class KernelArgument(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel argument: its position and the kind of its value; sizes are in bytes."""

    offset: int = msgspec.field(name=".offset")
    size: int = msgspec.field(name=".size")
    value_kind: str = msgspec.field(name=".value_kind")
    name: str = msgspec.field(name=".name", default="")
    type_name: str = msgspec.field(name=".type_name", default="")
    address_space: str = msgspec.field(name=".address_space", default="")


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel: its name, its descriptor's symbol, and its declared requirements; sizes are in bytes."""

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
    """Present only on processors with accumulation registers (gfx908 and later)."""
    sgpr_spill_count: int | None = msgspec.field(name=".sgpr_spill_count", default=None)
    vgpr_spill_count: int | None = msgspec.field(name=".vgpr_spill_count", default=None)
    uses_dynamic_stack: bool = msgspec.field(name=".uses_dynamic_stack", default=False)


class CodeMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The content of one metadata note. Notes in version 3 and in assembled code objects may not specify a target."""

    version: tuple[int, int] = msgspec.field(name=VERSION_KEY)
    target: str = msgspec.field(name=TARGET_KEY, default="")
    kernels: tuple[Kernel, ...] = msgspec.field(name="amdhsa.kernels", default=())


class _KernelCount(msgspec.Struct):
    kernels: list[msgspec.Raw] = msgspec.field(name="amdhsa.kernels", default_factory=list)


_METADATA = msgspec.msgpack.Decoder(CodeMetadata)
_COUNT = msgspec.msgpack.Decoder(_KernelCount)


def read_metadata(data: Data, code: CodeObject, *, place: CodePlace) -> tuple[CodeMetadata, ...]:
    """Return every metadata note of the code object ``code``, whose bytes are ``data``.

    Raises `ElfError` for notes that extend past their segment, and `DeviceCodeError` for notes that aren't MessagePack
    with this structure.
    """
    return tuple(
        decode_note(_METADATA, data[start:stop], place) for start, stop in iter_metadata_notes(data, code, place)
    )


def count_kernels(data: Data, code: CodeObject, *, place: CodePlace) -> int | None:
    """Return the number of kernels in the notes, or in the symbols for code object version 2.

    Returns `None` for an unlinked version 2 code object. Raises the same errors as `read_metadata`.
    """
    if code.version == _VERSION_OF_SYMBOLS:
        names = kernel_symbols(data, place=place)
        return None if names is None else len(names)
    notes = iter_metadata_notes(data, code, place)
    return sum(len(decode_note(_COUNT, data[start:stop], place).kernels) for start, stop in notes)


def kernel_symbols(data: Data, *, place: CodePlace) -> tuple[str, ...] | None:
    """Return the kernel names that the loader finds in a version 2 code object, or `None` if it isn't linked.

    In that version, the notes are YAML and have a different owner and kind. Raises `ElfError` for damaged files.
    """
    source = ElfBytes(data, str(place))
    segments = read_segments(source, read_header(source))
    file = read_dynamic_file(source, segments)
    if file is None:
        return None
    names = SymbolNames(file)
    kernels = (name for name, info, *_ in SymbolReader(file).symbols() if info & _SYMBOL_TYPE == STT_AMDGPU_HSA_KERNEL)
    return tuple(names.at(name).decode("utf-8", "backslashreplace") for name in kernels)


def kernel_names(data: Data, *, place: CodePlace) -> frozenset[str]:
    """Return the kernel names in the code object ``data``, of any version, or an empty set for other data.

    Raises the same errors as `read_metadata`.
    """
    if not is_code_object(data):
        return frozenset()
    code = read_code_object(data, place=place)
    if code.version == _VERSION_OF_SYMBOLS:
        return frozenset(kernel_symbols(data, place=place) or ())
    return frozenset(kernel.name for note in read_metadata(data, code, place=place) for kernel in note.kernels)


def decode_note(decoder: msgspec.msgpack.Decoder[Any], note: Data, place: CodePlace) -> Any:
    """Decode a metadata note's description; raise `DeviceCodeError` if the description doesn't match ``decoder``.

    The error also covers notes that are nested more deeply than Python can recurse.
    """
    try:
        return decoder.decode(load(note))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise DeviceCodeError(place, f"a metadata note that isn't valid MessagePack for a code object ({e})") from e


def iter_metadata_notes(data: Data, code: CodeObject, place: CodePlace) -> Iterator[tuple[int, int]]:
    """Yield the start and end of the description in each metadata note, as offsets in the code object.

    Raises `ElfError` for notes that extend past their segment.
    """
    source = ElfBytes(data, str(place))
    for offset, size in code.notes:
        for note in iter_notes(source, offset, offset + size):
            if note.kind == NT_AMDGPU_METADATA and note.name == _OWNER:
                yield note.offset, note.offset + note.size


_TOP_LEVEL = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
_MAP_16, _MAP_32 = 0xDE, 0xDF
_STRING_TYPES = ((1, 0xD9), (2, 0xDA), (4, 0xDB))
_NUMBER_TYPES = ((1, 0xCC), (2, 0xCD), (4, 0xCE), (8, 0xCF))


def rename_target(
    data: Data, code: CodeObject, old: TargetId, new: TargetId, *, place: CodePlace
) -> list[tuple[int, bytes]]:
    """Return the offsets and bytes that rename ``old`` to ``new`` in every metadata note, without moving anything.

    Notes without a target don't change. Raises `DeviceCodeError` if a note is for a different target, is too small for
    the new name, or is damaged.
    """
    edits = []
    for start, stop in iter_metadata_notes(data, code, place):
        note = bytes(data[start:stop])
        entries: dict[str, msgspec.Raw] = decode_note(_TOP_LEVEL, memoryview(note), place)
        if TARGET_KEY in entries:
            edits.append((start, _rename(note, entries, old, new, place)))
    return edits


def _rename(note: bytes, entries: dict[str, msgspec.Raw], old: TargetId, new: TargetId, place: CodePlace) -> bytes:
    header = note[: {_MAP_16: 3, _MAP_32: 5}.get(note[0], 1)]
    if _join(header, entries) != note:
        raise DeviceCodeError(place, "a metadata note whose encoding differs from LLVM's")
    isa = decode_note(msgspec.msgpack.Decoder(str), memoryview(entries[TARGET_KEY]), place)
    if not isa.endswith(f"-{old}"):
        raise DeviceCodeError(place, f"a metadata note for {isa!r}", expected=f"a note for {str(old)!r}")
    renamed = retargeted_triple(isa.removesuffix(str(old)), old, new) + str(new)
    version = _read_version(entries, place)
    for name, numbers in product(_encode_string(renamed), product(*map(_encode_number, version))):
        values = {TARGET_KEY: name, VERSION_KEY: bytes([0x90 + len(version)]) + b"".join(numbers)}
        edited = _join(header, {key: values.get(key, value) for key, value in entries.items()})
        if len(edited) == len(note):
            return edited
    raise DeviceCodeError(place, f"a metadata note without enough room to replace {str(old)!r} with {str(new)!r}")


def _read_version(entries: dict[str, msgspec.Raw], place: CodePlace) -> list[int]:
    if VERSION_KEY not in entries:
        return []
    version: list[int] = decode_note(msgspec.msgpack.Decoder(list[int]), memoryview(entries[VERSION_KEY]), place)
    if len(version) > 2 or not all(0 <= number < 128 for number in version):
        raise DeviceCodeError(place, f"a metadata note with version {version}", expected="two small numbers")
    return version


def _join(header: bytes, entries: dict[str, msgspec.Raw] | dict[str, bytes | msgspec.Raw]) -> bytes:
    pairs = ((msgspec.msgpack.encode(key), bytes(value)) for key, value in entries.items())
    return header + b"".join(part for pair in pairs for part in pair)


def _encode_string(text: str) -> Iterator[bytes]:
    """Yield every encoding of ``text``, shortest first."""
    data = text.encode()
    if len(data) < 32:
        yield bytes([0xA0 + len(data)]) + data
    for width, lead in _STRING_TYPES:
        if len(data) < 1 << 8 * width:
            yield bytes([lead]) + len(data).to_bytes(width, "big") + data


def _encode_number(number: int) -> Iterator[bytes]:
    """Yield every encoding of a small number, shortest first."""
    yield bytes([number])
    for width, lead in _NUMBER_TYPES:
        yield bytes([lead]) + number.to_bytes(width, "big")
