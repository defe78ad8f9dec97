"""The length of a zstd frame, from the headers of its blocks alone (:rfc:`8878`, sections 3.1.1 and 3.1.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.compression import zstd

if TYPE_CHECKING:
    from rocwheel.core.reading import Data

__all__ = ["measure_frame"]

_MAGIC = 0xFD2FB528
_SKIPPABLE, _SKIPPABLE_MASK = 0x184D2A50, 0xFFFFFFF0
_SKIPPABLE_HEADER = 8
_DICTIONARY_ID_SIZES = (0, 1, 2, 4)
_CONTENT_SIZE_SIZES = (0, 2, 4, 8)
_SINGLE_SEGMENT, _CHECKSUM = 1 << 5, 1 << 2
_BLOCK_HEADER = 3
_RLE, _RESERVED = 1, 3


def measure_frame(payload: Data) -> int:
    """Return the size of the zstd frame at the start; raises `zstd.ZstdError`.

    Next to nothing of the blocks themselves is read: a frame may be gigabytes long, and so may be what comes after it.
    """
    magic = _integer(payload, 0, 4)
    if magic & _SKIPPABLE_MASK == _SKIPPABLE:
        return _inside(payload, _SKIPPABLE_HEADER + _integer(payload, 4, 4))
    if magic != _MAGIC:
        msg = "it does not begin with a zstd frame"
        raise zstd.ZstdError(msg)
    descriptor = _integer(payload, 4, 1)
    position, is_last = 5 + _header_fields_size(descriptor), False
    while not is_last:
        header = _integer(payload, position, _BLOCK_HEADER)
        is_last = bool(header & 1)
        position = _inside(payload, position + _BLOCK_HEADER + _content_size(header))
    return _inside(payload, position + (4 if descriptor & _CHECKSUM else 0))


def _header_fields_size(descriptor: int) -> int:
    """Return the size of the fields between the frame header's descriptor and the first block."""
    is_single = bool(descriptor & _SINGLE_SEGMENT)
    content_size = _CONTENT_SIZE_SIZES[descriptor >> 6] or int(is_single)
    return int(not is_single) + _DICTIONARY_ID_SIZES[descriptor & 3] + content_size


def _content_size(header: int) -> int:
    kind, size = header >> 1 & 3, header >> 3
    if kind == _RESERVED:
        msg = "a zstd block is of the reserved type"
        raise zstd.ZstdError(msg)
    return 1 if kind == _RLE else size


def _integer(payload: Data, start: int, size: int) -> int:
    return int.from_bytes(bytes(payload[start : _inside(payload, start + size)]), "little")


def _inside(payload: Data, stop: int) -> int:
    if stop > len(payload):
        msg = "the zstd frame ends early"
        raise zstd.ZstdError(msg)
    return stop
