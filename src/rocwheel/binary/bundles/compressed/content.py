"""The content of compressed bundles: a plain bundle, decompressed in a stream, and compressed."""

from __future__ import annotations

import hashlib
import io
from typing import IO, TYPE_CHECKING

from rocwheel.binary.bundles.compressed.header import CompressedBundle, bad_payload, header_size, too_large
from rocwheel.binary.bundles.compressed.payload import (
    PAYLOAD_ERRORS,
    Method,
    compress_payload,
    iter_payload,
    iter_shares,
)
from rocwheel.binary.bundles.plain import OffloadBundle, read_offload_bundle
from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.kind import COMPRESSED_MAGIC
from rocwheel.core.messages import count
from rocwheel.core.reading import Data, iter_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


__all__ = [
    "HIGHEST_LEVEL",
    "RAW_SIZE_LIMIT",
    "WrongHashError",
    "compress_bundle",
    "decompress_bundle",
    "find_inner_magic",
    "iter_decompressed",
    "measure_entries",
    "read_compressed_head",
    "require_raw_size",
    "write_compressed_bundle",
]

HIGHEST_LEVEL = 22
"""The highest zstd level of bundles; archives have lower ones."""

RAW_SIZE_LIMIT = 1 << 32
"""The largest raw bundle that is held in memory unless the caller says otherwise, in bytes."""

_BLOCK = 1 << 20
_HEAD_BLOCK = 1 << 14
_HEAD_LIMIT = 1 << 20
_DIGEST_SIZE = 8


class WrongHashError(DeviceCodeError):
    """A bundle whose content does not match the hash in its header."""

    def __init__(self, place: Place, stored: bytes, actual: bytes) -> None:
        super().__init__(
            place,
            f"its hash is {stored.hex()}, that of its content {actual.hex()}",
            remedy="The device code may be damaged: get the file again, or use --force to take it as it is.",
        )


def read_compressed_head(data: Data, bundle: CompressedBundle, *, place: Place) -> OffloadBundle:
    """Read the header of the plain bundle inside, decompressing no more than that takes.

    ``data`` starts with the compressed bundle. Raises `DeviceCodeError` as `read_offload_bundle` does, and for a
    payload that isn't zlib or zstd data.
    """
    head = bytearray()
    problem: DeviceCodeError | None = None
    tried = 0
    for block in _iter_checked(data, bundle, place, block=_HEAD_BLOCK):
        head += block
        if len(head) >= min(2 * tried, bundle.raw_size):  # so that each byte is read twice or so
            tried = len(head)
            try:
                return read_offload_bundle(memoryview(bytes(head)), place=place, available=bundle.raw_size)
            except DeviceCodeError as e:
                problem = e
        if len(head) > _HEAD_LIMIT:
            break
    raise problem or DeviceCodeError(place, "its payload is empty")


def iter_decompressed(data: Data, bundle: CompressedBundle, *, place: Place) -> Iterator[bytes]:
    """Yield the plain bundle inside in blocks of at most 1 MiB, whatever its size.

    Raises `DeviceCodeError` when the payload is damaged, or doesn't end where the header says: with its input, and
    after ``raw_size`` bytes of output (a decompression bomb is cut off there). Raises `WrongHashError` once all is
    given: what came before is as the payload has it.
    """
    md5 = hashlib.md5(usedforsecurity=False)
    for block in _iter_checked(data, bundle, place, block=_BLOCK):
        md5.update(block)
        yield block
    if (digest := md5.digest()[:_DIGEST_SIZE]) != bundle.digest:
        raise WrongHashError(place, bundle.digest, digest)


def _iter_checked(data: Data, bundle: CompressedBundle, place: Place, *, block: int) -> Iterator[bytes]:
    payload = data[bundle.header_size : bundle.size]
    blocks = iter_payload(payload, bundle.method, block)
    produced = consumed = 0
    try:
        while True:
            piece = next(blocks)
            produced += len(piece)
            if produced > bundle.raw_size:
                raise too_large(place, bundle.raw_size)
            yield piece
    except StopIteration as e:
        consumed = int(e.value)
    except PAYLOAD_ERRORS as e:
        raise bad_payload(place, e) from e
    if produced != bundle.raw_size:
        raise DeviceCodeError(
            place, f"decompresses to {count(produced, 'byte')}", expected=f"{bundle.raw_size}, as its header declares"
        )
    _check_end(bundle, place, len(payload) - consumed)


def _check_end(bundle: CompressedBundle, place: Place, left: int) -> None:
    """Raise for a payload that ends before the declared total size."""
    if left:
        rest = count(left, "byte")
        raise DeviceCodeError(
            place,
            f"its payload ends {rest} before the declared total size of {bundle.size}",
            remedy="Readers of LLVM 22 and earlier refuse such a bundle.",
        )


def decompress_bundle(
    data: Data, bundle: CompressedBundle, *, place: Place, limit: int = RAW_SIZE_LIMIT
) -> tuple[Data, WrongHashError | None]:
    """Return the plain bundle inside and, if its hash is not the one in the header, the error to raise or to report.

    Memory is taken as the payload decompresses, whatever size the header declares.

    Raises `DeviceCodeError` for a raw size above ``limit``, and as `iter_decompressed` does.
    """
    require_raw_size(bundle, limit, place=place)
    raw = bytearray()  # grows with what comes: the declared size may be a lie
    wrong_hash: WrongHashError | None = None
    try:
        for block in iter_decompressed(data, bundle, place=place):
            raw += block
    except WrongHashError as e:
        wrong_hash = e
    return memoryview(raw).toreadonly(), wrong_hash


def require_raw_size(bundle: CompressedBundle, limit: int, *, place: Place) -> None:
    """Raise `DeviceCodeError` for a bundle that decompresses to more than ``limit`` bytes."""
    if bundle.raw_size > limit:
        raise DeviceCodeError(
            place,
            f"holds a bundle of {count(bundle.raw_size, 'byte')}",
            expected=f"at most {limit}, the limit set here",
            remedy="Set a higher limit if you trust the file.",
        )


def _digest(buffers: Iterable[Data]) -> bytes:
    md5 = hashlib.md5(usedforsecurity=False)
    for buffer in buffers:
        for piece in iter_pieces(buffer):
            md5.update(piece)
    return md5.digest()[:_DIGEST_SIZE]


def measure_entries(data: Data, bundle: CompressedBundle, plain: OffloadBundle, *, place: Place) -> list[int]:
    """Return how many compressed bytes each entry of ``plain``, the bundle inside, takes.

    Entries of less than a zstd block (128 KiB) share those of their block. An entry that repeats one before it takes
    next to nothing. Raises `DeviceCodeError` for a damaged payload.
    """
    sizes = [0.0] * len(plain.entries)
    begin = 0
    try:
        for produced, taken in iter_shares(data[bundle.header_size : bundle.size], bundle.method):
            end = begin + produced
            for number, entry in enumerate(plain.entries):
                overlap = min(entry.stop, end) - max(entry.offset, begin)
                sizes[number] += taken * max(overlap, 0) / produced
            begin = end
    except PAYLOAD_ERRORS as e:
        raise bad_payload(place, e) from e
    return [round(size) for size in sizes]


def compress_bundle(raw: Iterable[Data], *, version: int, level: int, method: Method = Method.ZSTD) -> bytes:
    """Return what `write_compressed_bundle` writes; at a level near ``level`` where this has the magic within."""
    buffers, written = list(raw), [b""]
    for tried in (level, *(other for other in (level + 1, level - 1, level + 2) if 1 <= other <= HIGHEST_LEVEL)):
        file = io.BytesIO()
        write_compressed_bundle(file, buffers, version=version, level=tried, method=method)
        written.append(file.getvalue())
        if find_inner_magic(written[-1]) is None:
            return written[-1]
    return written[1]


def find_inner_magic(bundle: bytes | Data) -> int | None:
    """Return where a compressed bundle has the magic of such once more; none for most.

    Readers that look for the next bundle by its magic, and not where this one ends, take that for another bundle.
    """
    before, start = b"", 0
    for piece in iter_pieces(memoryview(bundle) if isinstance(bundle, bytes) else bundle):
        both = before + bytes(piece)
        found = both.find(COMPRESSED_MAGIC, 0 if start else 1)
        if found >= 0:
            return start - len(before) + found
        start += len(piece)
        before = both[1 - len(COMPRESSED_MAGIC) :]
    return None


def write_compressed_bundle(
    file: IO[bytes], raw: Iterable[Data], *, version: int, level: int, method: Method = Method.ZSTD
) -> None:
    """Write a plain bundle, given as a sequence of buffers, as a CCOB of ``version`` 2 or 3 where ``file`` stands.

    The zstd window spans the bundle, up to 128 MiB, and long-distance matching is on, so that the code of many targets
    that is the same costs almost nothing. Memory holds the window, and a few megabytes of each side.
    Raises `ValueError` for version 1, which the runtime can't read, and for 4 GiB or more in version 2.
    """
    buffers = list(raw)
    raw_size = sum(len(buffer) for buffer in buffers)
    if version not in {2, 3} or (version == 2 and raw_size >= 1 << 32):
        msg = f"a bundle of {count(raw_size, 'byte')} can't be written in version {version}"
        raise ValueError(msg)
    start, size = file.tell(), header_size(version)
    file.seek(start + size)
    file.writelines(compress_payload(buffers, method, level))
    stop = file.tell()
    file.seek(start)
    file.write(CompressedBundle(version, method, size, stop - start, raw_size, _digest(buffers)).pack())
    file.seek(stop)
