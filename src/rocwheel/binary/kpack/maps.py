"""MessagePack maps from any file: where they end, and a refusal of what readers decode differently.

See https://github.com/msgpack/msgpack/blob/master/spec.md. A value may be followed by others, as a marker is by the
rest of its section, so its end is found first; msgspec decodes what is before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from rocwheel.binary.kpack.errors import KpackError
from rocwheel.core.messages import count, shortened

if TYPE_CHECKING:
    from rocwheel.binary.code_objects.errors import Place

__all__ = ["CONTAINER_LIMIT", "decode_map", "decode_value", "value_end"]

Value = TypeVar("Value")

CONTAINER_LIMIT = 1 << 20
"""The largest number of entries of a map or an array: AMD's runtime takes no more code objects in an archive."""

_SIZES = dict(
    zip(
        (0xC0, 0xC2, 0xC3, 0xCA, 0xCB, 0xCC, 0xCD, 0xCE, 0xCF, 0xD0, 0xD1, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8),
        (0, 0, 0, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17),
        strict=True,
    )
)
"""Bytes after the first one, of values of a fixed size: nil, bool, float, uint, int, fixext."""
_LENGTHS = {lead + n: (1 << n, more) for lead, more in ((0xC4, 0), (0xC7, 1), (0xD9, 0)) for n in range(3)}
"""Bytes of the length of bin, ext and str, and what comes on top of it: the type of an ext."""
_CONTAINERS = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}
"""Bytes of the count of arrays and maps, and the values in each of their entries."""
_RAW_MAP = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])


def value_end(data: bytes, start: int, place: Place) -> int:
    """Return where the value at ``start`` ends; raise `KpackError` if that is not in ``data``."""
    position, missing = start, 1
    while missing:
        if position >= len(data):
            raise KpackError(place, f"MessagePack that ends early, after {count(len(data) - start, 'byte')}")
        position, values = _step(data, position, place)
        missing += values - 1
    if position > len(data):
        raise KpackError(place, f"MessagePack that ends early, after {count(len(data) - start, 'byte')}")
    return position


def _step(data: bytes, position: int, place: Place) -> tuple[int, int]:
    """Return the position after the head of a value, or after all of a simple one, and how many values it holds."""
    lead = data[position]
    position += 1
    if lead < 0x80 or lead >= 0xE0:
        return position, 0
    if lead < 0xA0:
        return position, (lead & 0xF) * (2 if lead < 0x90 else 1)
    if lead < 0xC0:
        return position + (lead & 0x1F), 0
    if lead in _SIZES:
        return position + _SIZES[lead], 0
    if lead in _LENGTHS:
        width, more = _LENGTHS[lead]
        return position + width + more + _number(data, position, width), 0
    if lead in _CONTAINERS:
        width, values = _CONTAINERS[lead]
        return position + width, values * _number(data, position, width)
    raise KpackError(place, f"the byte {lead:#x} {count(position - 1, 'byte')} on, which begins no MessagePack value")


def _number(data: bytes, position: int, width: int) -> int:
    return int.from_bytes(data[position : position + width], "big")


def decode_map(raw: msgspec.Raw | bytes, what: str, place: Place) -> dict[str, msgspec.Raw]:
    """Return the values of a map by their keys, still encoded; ``what`` names it in messages.

    Raises `KpackError` for another value, for keys that are no strings or that come twice, and for too many of them.
    """
    size = _size(raw, what, place)
    values: dict[str, msgspec.Raw] = decode_value(_RAW_MAP, raw, what, place)
    if len(values) != size:
        found = f"{what} with {count(size, 'key')}, of which {len(values)} differ"
        raise KpackError(place, found, expected="each key once: readers take different ones")
    return values


def decode_value(decoder: msgspec.msgpack.Decoder[Value], raw: msgspec.Raw | bytes, what: str, place: Place) -> Value:
    """Return the value that ``raw`` encodes; raise `KpackError` if it is of another kind than the decoder's."""
    _size(raw, what, place)
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise KpackError(place, f"{what} that can't be read ({shortened(str(e))})") from e


def _size(raw: msgspec.Raw | bytes, what: str, place: Place) -> int:
    """Return the number of entries of a map or an array, 0 for other values; raise `KpackError` for too many."""
    data = bytes(memoryview(raw)[:5])
    lead = data[0] if data else 0
    size = lead & 0xF if 0x80 <= lead < 0xA0 else 0
    if lead in _CONTAINERS:
        size = _number(data, 1, _CONTAINERS[lead][0])
    if size > CONTAINER_LIMIT:
        raise KpackError(place, f"{what} of {size} entries", expected=f"at most {CONTAINER_LIMIT}")
    return size
