"""The target that the metadata notes of a code object name, and changing it where it stands.

Nothing in a code object may move, so a note keeps its size. Notes are MessagePack, in which the same value has several
encodings: where the new name is shorter, the name's length and the two numbers of ``amdhsa.version`` take longer ones.
See https://github.com/msgpack/msgpack/blob/master/spec.md.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.code_objects.kernel_metadata import TARGET_KEY, VERSION_KEY, decode_note, iter_metadata_notes
from rocwheel.binary.code_objects.target_id import retargeted_triple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.code_objects.code_object import CodeObject
    from rocwheel.binary.code_objects.target_id import TargetId
    from rocwheel.core.reading import Data

__all__ = ["rename_target"]

_TOP_LEVEL = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
_MAP_16, _MAP_32 = 0xDE, 0xDF
_STRING_TYPES = ((1, 0xD9), (2, 0xDA), (4, 0xDB))
_NUMBER_TYPES = ((1, 0xCC), (2, 0xCD), (4, 0xCE), (8, 0xCF))


def rename_target(
    data: Data, code: CodeObject, old: TargetId, new: TargetId, *, place: Place
) -> list[tuple[int, bytes]]:
    """Return the offsets and bytes that make every metadata note name ``new`` instead of ``old``; nothing moves.

    Notes without a target stay. Raises `DeviceCodeError` when a note names another target, when it has no room for the
    new name, and when a note is damaged.
    """
    edits = []
    for start, stop in iter_metadata_notes(data, code, place):
        note = bytes(data[start:stop])
        entries: dict[str, msgspec.Raw] = decode_note(_TOP_LEVEL, memoryview(note), place)
        if TARGET_KEY in entries:
            edits.append((start, _rename(note, entries, old, new, place)))
    return edits


def _rename(note: bytes, entries: dict[str, msgspec.Raw], old: TargetId, new: TargetId, place: Place) -> bytes:
    header = note[: {_MAP_16: 3, _MAP_32: 5}.get(note[0], 1)]
    if _join(header, entries) != note:
        raise DeviceCodeError(place, "a metadata note in another encoding than that of LLVM")
    isa = decode_note(msgspec.msgpack.Decoder(str), memoryview(entries[TARGET_KEY]), place)
    if not isa.endswith(f"-{old}"):
        raise DeviceCodeError(place, f"a metadata note for {isa!r}", expected=f"one for {str(old)!r}")
    renamed = retargeted_triple(isa.removesuffix(str(old)), old, new) + str(new)
    version = _read_version(entries, place)
    for name, numbers in product(_encode_string(renamed), product(*map(_encode_number, version))):
        values = {TARGET_KEY: name, VERSION_KEY: bytes([0x90 + len(version)]) + b"".join(numbers)}
        edited = _join(header, {key: values.get(key, value) for key, value in entries.items()})
        if len(edited) == len(note):
            return edited
    raise DeviceCodeError(place, f"a metadata note that has no room for {str(new)!r} where it has {str(old)!r}")


def _read_version(entries: dict[str, msgspec.Raw], place: Place) -> list[int]:
    if VERSION_KEY not in entries:
        return []
    version: list[int] = decode_note(msgspec.msgpack.Decoder(list[int]), memoryview(entries[VERSION_KEY]), place)
    if len(version) > 2 or not all(0 <= number < 128 for number in version):
        raise DeviceCodeError(place, f"a metadata note of version {version}", expected="two small numbers")
    return version


def _join(header: bytes, entries: dict[str, msgspec.Raw] | dict[str, bytes | msgspec.Raw]) -> bytes:
    pairs = ((msgspec.msgpack.encode(key), bytes(value)) for key, value in entries.items())
    return header + b"".join(part for pair in pairs for part in pair)


def _encode_string(text: str) -> Iterator[bytes]:
    """Yield every encoding, the shortest first."""
    data = text.encode()
    if len(data) < 32:
        yield bytes([0xA0 + len(data)]) + data
    for width, lead in _STRING_TYPES:
        if len(data) < 1 << 8 * width:
            yield bytes([lead]) + len(data).to_bytes(width, "big") + data


def _encode_number(number: int) -> Iterator[bytes]:
    """Yield every encoding of a small number, the shortest first."""
    yield bytes([number])
    for width, lead in _NUMBER_TYPES:
        yield bytes([lead]) + number.to_bytes(width, "big")
