"""The payloads of compressed bundles: zlib streams and zstd frames, read and written in a stream."""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import TYPE_CHECKING

from rocwheel.binary.kind import COMPRESSED_MAGIC
from rocwheel.core.compression import zstd
from rocwheel.core.reading import Data, iter_pieces, load

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence


__all__ = [
    "PAYLOAD_ERRORS",
    "Method",
    "compress_payload",
    "iter_payload",
    "iter_shares",
    "zstd_content_size",
]

PAYLOAD_ERRORS = (zstd.ZstdError, zlib.error, EOFError)
"""What reading a damaged payload raises."""

_INPUT = 1 << 14
_SHARE_INPUT = 1 << 9
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_HEADER_LIMIT = 18
_READER_WINDOW_LOG = 31
_WRITER_WINDOW_LOG = 27
"""The largest window that decoders accept when they stream with default settings: 128 MiB."""
_LDM_HASH_RATE_LOG = 7
"""How densely long-distance matching samples: on fat binaries, less dense is slower in size, denser in time."""
_DECODER_OPTIONS = {int(zstd.DecompressionParameter.window_log_max): _READER_WINDOW_LOG}


class Method(IntEnum):
    """How a payload is compressed: the values of ``llvm::compression::Format``."""

    ZLIB = 0
    ZSTD = 1


def zstd_content_size(payload: Data) -> int | None:
    """Return the content size that the header of a zstd frame states; raises `zstd.ZstdError`."""
    return zstd.get_frame_info(load(payload[:_ZSTD_HEADER_LIMIT])).decompressed_size


def iter_payload(payload: Data, method: Method, block: int) -> Generator[bytes, None, int]:
    """Decompress in blocks of at most ``block`` bytes; the return value says how much input was taken.

    Raises one of `PAYLOAD_ERRORS` for damaged data and for data that end early.
    """
    return _iter_zstd(payload, block) if method is Method.ZSTD else _iter_zlib(payload, block)


def _iter_zstd(payload: Data, block: int) -> Generator[bytes, None, int]:
    """Decompress one frame after the other; the return value says how much input they took."""
    consumed = 0
    while consumed < len(payload) and (consumed == 0 or not _is_end(payload[consumed:], Method.ZSTD)):
        decoder = zstd.ZstdDecompressor(options=_DECODER_OPTIONS)
        position = consumed
        while not decoder.eof:
            chunk = bytes(payload[position : position + _INPUT]) if decoder.needs_input else b""
            if decoder.needs_input and not chunk:
                msg = "the compressed data end early"
                raise EOFError(msg)
            position += len(chunk)
            if piece := decoder.decompress(chunk, max_length=block):
                yield piece
        consumed = position - len(decoder.unused_data)
    return consumed


def _iter_zlib(payload: Data, block: int) -> Generator[bytes, None, int]:
    """Decompress one stream; the return value says how much input it took."""
    decoder = zlib.decompressobj()
    position, pending = 0, b""
    while not decoder.eof:
        chunk = pending or bytes(payload[position : position + _INPUT])
        position += 0 if pending else len(chunk)
        piece = decoder.decompress(chunk, block)
        pending = decoder.unconsumed_tail
        if not chunk and not piece:
            msg = "the compressed data end early"
            raise EOFError(msg)
        if piece:
            yield piece
    return position - len(decoder.unused_data)


def iter_shares(payload: Data, method: Method) -> Iterator[tuple[int, int]]:
    """Yield the raw and the compressed size of small pieces of output, in order.

    Raises one of `PAYLOAD_ERRORS` for damaged data.
    """
    decoder = _decoder(method)
    position = taken = 0
    while position < len(payload) and not (decoder.eof and _is_end(payload[position:], method)):
        decoder = _decoder(method) if decoder.eof else decoder
        chunk = bytes(payload[position : position + _SHARE_INPUT])
        produced = len(decoder.decompress(chunk))
        used = len(chunk) - len(decoder.unused_data)
        position += used
        taken += used
        if produced:
            yield produced, taken
            taken = 0


def _decoder(method: Method) -> zstd.ZstdDecompressor | zlib._Decompress:
    return zstd.ZstdDecompressor(options=_DECODER_OPTIONS) if method is Method.ZSTD else zlib.decompressobj()


def _is_end(rest: Data, method: Method) -> bool:
    """Return whether the payload is over where ``rest`` begins, which follows a frame or stream."""
    return method is Method.ZLIB or bytes(rest[: len(_ZSTD_MAGIC)]) != _ZSTD_MAGIC


def compress_payload(buffers: Sequence[Data], method: Method, level: int) -> Iterator[bytes]:
    """Compress the buffers, in their order, into one stream or frame, which is yielded in pieces.

    Where they have the magic of compressed bundles, a block ends within it: encoders may copy bytes as they are, and
    some readers look for the next bundle by its magic alone.
    """
    pieces = _cut_within_magic(piece for buffer in buffers for piece in iter_pieces(buffer))
    if method is Method.ZLIB:
        deflater = zlib.compressobj(min(level, 9))
        for piece, is_cut in pieces:
            yield deflater.compress(piece) + (deflater.flush(zlib.Z_SYNC_FLUSH) if is_cut else b"")
        yield deflater.flush()
        return
    encoder = _zstd_encoder(buffers, level)
    for piece, is_cut in pieces:
        yield encoder.compress(piece, mode=encoder.FLUSH_BLOCK if is_cut else encoder.CONTINUE)
    yield encoder.flush()


def _cut_within_magic(pieces: Iterable[memoryview]) -> Iterator[tuple[memoryview, bool]]:
    """Yield the pieces, cut within each magic of a compressed bundle, and whether a cut follows."""
    before = b""
    for piece in pieces:
        both = before + bytes(piece)
        start, found = len(before), both.find(COMPRESSED_MAGIC)
        while found >= 0:
            cut = max(found + len(COMPRESSED_MAGIC) // 2, start)
            yield memoryview(both)[start:cut], True
            start, found = cut, both.find(COMPRESSED_MAGIC, found + 1)
        yield memoryview(both)[start:], False
        before = both[1 - len(COMPRESSED_MAGIC) :]


def _zstd_encoder(buffers: Sequence[Data], level: int) -> zstd.ZstdCompressor:
    raw_size = sum(map(len, buffers))
    parameter = zstd.CompressionParameter
    options: dict[int, int] = {
        parameter.compression_level: level,
        parameter.enable_long_distance_matching: 1,
        parameter.ldm_hash_rate_log: _LDM_HASH_RATE_LOG,
        parameter.window_log: min(max(raw_size.bit_length(), 10), _WRITER_WINDOW_LOG),
    }
    encoder: zstd.ZstdCompressor = zstd.ZstdCompressor(options=options)
    encoder.set_pledged_input_size(raw_size)
    return encoder
