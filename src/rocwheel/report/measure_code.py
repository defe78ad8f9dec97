"""What the device code of a file takes when it is compressed in its bundles, and as kpack archives hold it."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import deflate
import msgspec

from rocwheel.binary.bundles.compressed.content import compress_bundle
from rocwheel.binary.bundles.device_code import read_device_code
from rocwheel.binary.bundles.sequence import iter_entries
from rocwheel.binary.bundles.storage import DEFAULT_LEVEL
from rocwheel.binary.kind import has_facts
from rocwheel.binary.kpack.write_archive import KernelMeter
from rocwheel.distributions.zip.reader import open_content
from rocwheel.foundation.errors import InputError, WorkError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Executor

    from rocwheel.binary.bundles.device_code import DeviceCode
    from rocwheel.binary.bundles.sequence import Bundle
    from rocwheel.diffing.values import Item, Unpack
    from rocwheel.foundation.files.reading.file_view import Data

__all__ = ["MeasuredCode", "measure_code"]

_PIECE = 16 << 20
_SAMPLED = 64 << 20
"""About how many bytes of a file's bundles are looked at for an estimate; a bundle is taken whole."""
_WHEEL_LEVEL = 6
_MOST_RAW = 4 << 30


class MeasuredCode(msgspec.Struct, frozen=True, kw_only=True):
    """The bundles of one file, in bytes. What was not looked at, for an estimate, counts like the rest."""

    host: int
    """All that is no bundle."""
    host_packed: int
    """The same, as a wheel has it."""
    bundles: int
    compressed: int
    """The bundles, once those that are plain are compressed."""
    archived: dict[str, int]
    """Target to its code as kpack archives hold it."""
    measured: int
    """How many bytes of the bundles were looked at."""


class _Sizes(msgspec.Struct, frozen=True):
    compressed: int
    archived: tuple[tuple[str, int], ...]


def measure_code(
    item: Item, executor: Executor, *, estimate: bool = False, unpack: Unpack = open_content
) -> MeasuredCode | None:
    """Return what compressing does to the bundles of a file, by doing it; with ``estimate``, to some of them.

    A member of a wheel is had by way of ``unpack``. None for a file without bundles and for one that can't be read.
    Raises `WorkError` where the system is at fault.
    """
    if item.link is not None or item.content is None or not item.size:
        return None
    try:
        if not has_facts(item.head()):
            return None
        with item.view(unpack) as data:
            code = read_device_code(data, name=item.source)
            bundles = tuple(code.iter_bundles(data)) if code and code.code_object is None else ()
            return _measure(data, code, bundles, executor, estimate=estimate) if code and bundles else None
    except WorkError:
        raise
    except InputError:
        return None


def _measure(
    data: Data, code: DeviceCode, bundles: Sequence[Bundle], executor: Executor, *, estimate: bool
) -> MeasuredCode:
    view = code.view(data)
    total = sum(bundle.size for bundle in bundles)
    chosen = bundles[:: max(1, total // _SAMPLED)] if estimate else bundles
    found = list(executor.map(lambda bundle: _sizes_of(view, bundle), chosen))
    seen = sum(bundle.size for bundle in chosen)
    archived: dict[str, int] = defaultdict(int)
    for sizes in found:
        for target, size in sizes.archived:
            archived[target] += size
    spans = sorted((bundle.place.offset, bundle.place.offset + bundle.size) for bundle in bundles)
    return MeasuredCode(
        host=len(data) - total,
        host_packed=sum(executor.map(_deflated, _pieces(data, spans))),
        bundles=total,
        compressed=sum(sizes.compressed for sizes in found) * total // seen,
        archived={target: size * total // seen for target, size in archived.items()},
        measured=seen,
    )


def _sizes_of(view: Data, bundle: Bundle) -> _Sizes:
    compressed = bundle.size
    if bundle.compressed is None and bundle.size < _MOST_RAW:
        raw = [view[bundle.start : bundle.stop]]
        compressed = min(compressed, len(compress_bundle(raw, version=2, level=DEFAULT_LEVEL)))
    return _Sizes(compressed, tuple(_archived(view, bundle)))


def _archived(view: Data, bundle: Bundle) -> Iterator[tuple[str, int]]:
    """Yield the target of each code object and its size in a kpack archive, in one pass and with none in memory."""
    ordered = sorted(bundle.plain.device_entries, key=lambda entry: entry.offset)
    yield from ((str(entry.target), KernelMeter(0).finish()) for entry in ordered if not entry.size)
    pieces = iter_entries(view, bundle, [entry for entry in ordered if entry.size])
    for entry, found in groupby(pieces, itemgetter(0)):  # one after the other: entries don't overlap
        meter = KernelMeter(entry.size)
        for _, piece in found:
            meter.add(piece)
        yield str(entry.target), meter.finish()


def _pieces(data: Data, spans: Sequence[tuple[int, int]]) -> list[Data]:
    """Return the bytes outside of some spans, in pieces."""
    gaps, at = [], 0
    for start, stop in spans:
        gaps.append((at, start))
        at = max(at, stop)
    gaps.append((at, len(data)))
    return [data[place : min(place + _PIECE, stop)] for start, stop in gaps for place in range(start, stop, _PIECE)]


def _deflated(piece: Data) -> int:
    return min(len(piece), len(deflate.deflate_compress(bytes(piece), _WHEEL_LEVEL)))
