"""Reads sequences of plain or compressed bundles, which linkers put into ``.hip_fatbin``."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.compressed import (
    CompressedBundle,
    iter_decompressed,
    read_compressed_bundle,
    read_compressed_head,
    require_raw_size,
)
from rocwheel.binary.bundles.plain import BundleEntry, OffloadBundle, read_offload_bundle
from rocwheel.binary.bundles.runtimes import first_reader
from rocwheel.binary.code_objects import CodePlace, DeviceCodeError
from rocwheel.binary.kind import (
    BUNDLE_MAGIC,
    COMPRESSED_MAGIC,
    is_bundle,
    is_compressed_bundle,
    is_plain_bundle,
)
from rocwheel.core.compression import BOUND, CAUTION, most_unpacked
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.code_objects import TargetId
    from rocwheel.core.reading import Data

_BLOCK = 1 << 20
_ZEROS = bytes(_BLOCK)
_PADDING_LIMIT = 8192
"""The longest run of zeros that isn't skipped in one step.

Linkers pad bundles to 4096 bytes, so a longer run is the result of editing.
"""


class Bundle(msgspec.Struct, frozen=True):
    """A bundle, plain or compressed; ``start`` and ``size`` specify its range in the surrounding data, in bytes."""

    place: CodePlace
    start: int
    size: int
    plain: OffloadBundle
    """The header of the bundle itself; for a compressed bundle, the header of the plain bundle inside it."""
    compressed: CompressedBundle | None = None

    @property
    def stop(self) -> int:
        """The end of the bundle."""
        return self.start + self.size

    @property
    def raw_size(self) -> int:
        """The size of the plain bundle, in bytes."""
        return self.compressed.raw_size if self.compressed else self.plain.size

    @property
    def targets(self) -> tuple[TargetId, ...]:
        """The targets of the device entries, in file order."""
        return self.plain.targets

    def find_problems(self) -> tuple[str, ...]:
        """Return the problems that cause some or all readers to reject the bundle, each with its position."""
        problems = list(self.plain.find_problems())
        if self.compressed and not first_reader(self.compressed.version):
            problems.append(
                "the bundle has compression version 1, which the runtime mistakes for a later version and rejects"
            )
        if self.compressed and self.compressed.raw_size != self.plain.size:
            sizes = f"{count(self.compressed.raw_size, 'byte')}, but its entries end after {self.plain.size}"
            problems.append(f"the header declares that the bundle decompresses to {sizes}")
        if self.compressed and self.plain.short_host:
            problems.append(f"LLVM 21 and later reject the entry {self.plain.short_host!r} in a compressed bundle")
        return tuple(f"{self.place}: {problem}" for problem in problems)


def read_bundle(data: Data, start: int, *, place: CodePlace) -> Bundle:
    """Read the bundle at ``start``.

    Raises `DeviceCodeError` if there is no bundle or if it is damaged, and for a compressed bundle that decompresses to
    more than `most_unpacked` allows.
    """
    rest = data[start:]
    if is_compressed_bundle(rest):
        compressed = read_compressed_bundle(rest, place=place)
        if compressed.raw_size > most_unpacked(compressed.size):  # the payload can't exceed the size in the header
            found = f"{count(compressed.size, 'byte')} that decompress to {count(compressed.raw_size, 'byte')}"
            raise DeviceCodeError(place, found, expected=BOUND, remedy=CAUTION)
        return Bundle(place, start, compressed.size, read_compressed_head(rest, compressed, place=place), compressed)
    if not is_plain_bundle(rest):
        raise _no_bundle(rest, place)
    plain = read_offload_bundle(rest, place=place)
    return Bundle(place, start, plain.size, plain)


def _no_bundle(rest: Data, place: CodePlace, previous: Bundle | None = None) -> DeviceCodeError:
    """Return the error for bytes that aren't the start of a bundle.

    The bytes may belong to ``previous`` if the size in its header is wrong.
    """
    remedy = ""
    if previous and previous.compressed and previous.compressed.version > 1:
        declared = f"the {count(previous.size, 'byte')} that its header declares"
        remedy = f"Bundle {previous.place.bundle}, before it, may be longer than {declared}."
    return DeviceCodeError(
        place,
        f"{bytes(rest[:24])!r} where a bundle should start",
        expected=f"{BUNDLE_MAGIC!r} or {COMPRESSED_MAGIC!r}",
        remedy=remedy,
    )


def iter_bundles(data: Data, *, name: str, base: int = 0, starts: Sequence[int] = ()) -> Iterator[Bundle]:
    """Yield every bundle in ``data``, skipping the zeros between bundles.

    ``base`` is the offset of ``data`` in the file ``name``, for messages. ``starts`` are known starts of bundles, in
    ascending order. After long padding, the search continues at the next known start, so it doesn't read gigabytes of
    zeros. Raises the same errors as `read_bundle`.
    """
    bundle: Bundle | None = None
    number = 0
    position = _next_start(data, 0, starts)
    while position < len(data):
        place = CodePlace(name, base + position, number)
        if bundle and not is_bundle(data[position:]):
            raise _no_bundle(data[position:], place, bundle)
        bundle = read_bundle(data, position, place=place)
        yield bundle
        number += 1
        position = _next_start(data, bundle.stop, starts)


def require_size(bundle: Bundle, limit: int) -> None:
    """Raise `DeviceCodeError` for a compressed bundle that decompresses to more than ``limit`` bytes."""
    if bundle.compressed:
        require_raw_size(bundle.compressed, limit, place=bundle.place)


def _next_start(data: Data, position: int, starts: Sequence[int]) -> int:
    near = _skip_zeros(data, position, min(position + _PADDING_LIMIT, len(data)))
    if near < position + _PADDING_LIMIT:
        return near
    index = bisect_right(starts, near - 1)
    return starts[index] if index < len(starts) else _skip_zeros(data, near, len(data))


def _skip_zeros(data: Data, position: int, stop: int) -> int:
    while position < stop:
        block = bytes(data[position : min(position + _BLOCK, stop)])
        if block != _ZEROS[: len(block)]:
            return position + len(block) - len(block.lstrip(b"\0"))
        position += len(block)
    return stop


def iter_entries(data: Data, bundle: Bundle, entries: Sequence[BundleEntry]) -> Iterator[tuple[BundleEntry, Data]]:
    """Yield the payloads of ``entries`` in pieces, each piece with its entry, in one pass over the bundle.

    ``data`` contains ``bundle``. A compressed bundle is decompressed block by block, and only one block is kept in
    memory. Raises `DeviceCodeError` for a damaged payload.
    """
    if bundle.compressed is None:
        for entry in entries:
            yield entry, data[bundle.start + entry.offset : bundle.start + entry.stop]
        return
    begin = 0
    for block in iter_decompressed(data[bundle.start :], bundle.compressed, place=bundle.place):
        end = begin + len(block)
        for entry in entries:
            if begin < entry.stop and entry.offset < end:
                yield entry, memoryview(block)[max(entry.offset - begin, 0) : entry.stop - begin]
        begin = end


def iter_entry(data: Data, bundle: Bundle, entry: BundleEntry) -> Iterator[Data]:
    """Yield the payload of one entry in pieces."""
    for _, piece in iter_entries(data, bundle, [entry]):
        yield piece
