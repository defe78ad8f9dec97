"""Code objects of a kpack archive in zstd frames: where each is, and what is in it."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from rocwheel.binary.code_objects.errors import Place
from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.errors import KpackError
from rocwheel.binary.kpack.maps import CONTAINER_LIMIT
from rocwheel.binary.kpack.toc import Blob
from rocwheel.core.compression import zstd
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.kpack.toc import Toc
    from rocwheel.core.reading import Data

__all__ = ["FRAME_LIMIT", "SIZE", "begins_with_frames", "iter_frame", "read_frames"]

SIZE = struct.Struct("<I")
"""The number of frames, and before each of them its size."""
FRAME_LIMIT = CONTAINER_LIMIT
"""The largest number of frames that AMD's runtime takes."""
_FIRST = 64
"""Where all known writers begin with the frames: after their number and the size of the first."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_WHOLE_LIMIT = 1 << 32
"""What AMD's runtime takes for all frames, in bytes."""
_INPUT = 1 << 16
_OUTPUT = 4 << 20
_WINDOW_LOG = 27
"""The largest window, of 128 MiB, so that memory stays bounded; writers of kernels need 8 MiB."""
_OPTIONS = {int(zstd.DecompressionParameter.window_log_max): _WINDOW_LOG}


def begins_with_frames(data: Data) -> bool:
    """Return whether a file is an archive that writers have begun with zstd frames; nothing else of it is read."""
    start = _FIRST + 2 * SIZE.size
    return is_kpack(data) and bytes(data[start : start + len(_ZSTD_MAGIC)]) == _ZSTD_MAGIC


def read_frames(data: Data, toc: Toc, name: str, toc_offset: int) -> tuple[Blob, ...]:
    """Return where the frames are, by their ordinals; raises `KpackError` when they are not where the table says."""
    start, stop = _frames_place(toc, Place(name, toc_offset), toc_offset)
    frames = _number(data, start)
    if frames > FRAME_LIMIT:
        raise KpackError(Place(name, start), f"{count(frames, 'zstd frame')}", expected=f"at most {FRAME_LIMIT}")
    blobs = []
    position = start + SIZE.size
    for ordinal in range(frames):
        frame_size = _number(data, position) if position + SIZE.size <= stop else stop
        position += SIZE.size
        if position + frame_size > stop:
            found = f"zstd frame {ordinal} of {frames}, which goes on behind the last of them"
            raise KpackError(Place(name, position), found, expected=f"its end before {stop:#x}")
        blobs.append(Blob(position, frame_size))
        position += frame_size
    if position != stop:
        found = f"{count(stop - position, 'byte')} after the last zstd frame"
        raise KpackError(Place(name, position), found, expected=f"its end at {stop:#x}, where the table says")
    return tuple(blobs)


def _frames_place(toc: Toc, place: Place, toc_offset: int) -> tuple[int, int]:
    """Return where the frames begin, with their count, and where they end, as the table of contents says."""
    start, size = toc.number("zstd_offset", place), toc.number("zstd_size", place)
    stop = start + size
    if start < 16 or size < SIZE.size or stop > toc_offset:
        found = f"zstd frames from {start:#x} to {stop:#x}"
        raise KpackError(place, found, expected=f"them between the header and the table of contents at {toc_offset:#x}")
    if size > _WHOLE_LIMIT:
        raise KpackError(place, f"zstd frames of {size} bytes", expected=f"at most {_WHOLE_LIMIT}")
    return start, stop


def _number(data: Data, offset: int) -> int:
    return int(SIZE.unpack(bytes(data[offset : offset + SIZE.size]))[0])


def iter_frame(frame: Data, size: int, *, place: Place) -> Iterator[bytes]:
    """Yield what is in a zstd frame, in pieces; never more than ``size`` bytes.

    Raises `KpackError` when it is damaged, or holds another number of bytes.
    """
    try:
        yield from _iter_frame(frame, size, place)
    except zstd.ZstdError as e:
        raise KpackError(place, f"a damaged zstd frame ({e})") from e


def _iter_frame(frame: Data, size: int, place: Place) -> Iterator[bytes]:
    decoder = zstd.ZstdDecompressor(options=_OPTIONS)
    position = produced = 0
    while not decoder.eof:
        chunk = bytes(frame[position : position + _INPUT]) if decoder.needs_input else b""
        if decoder.needs_input and not chunk:
            raise KpackError(place, f"a zstd frame that ends early, after {count(produced, 'byte')} of {size}")
        position += len(chunk)
        piece = decoder.decompress(chunk, max_length=_OUTPUT)
        produced += len(piece)
        if produced > size:
            raise KpackError(place, f"a zstd frame of more than {count(size, 'byte')}", expected="as many as declared")
        if piece:
            yield piece
    if produced < size:
        raise KpackError(place, f"a zstd frame of {count(produced, 'byte')}", expected=f"{size}, as declared")
    rest = len(frame) - position + len(decoder.unused_data)
    if rest:
        raise KpackError(place, f"{count(rest, 'byte')} after the end of a zstd frame", expected="none")
