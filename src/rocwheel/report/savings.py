"""Measures the size of device code after compressing, splitting, and pruning, and the savings from these actions."""

from __future__ import annotations

import itertools
from collections import defaultdict
from functools import cache, partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import deflate
import msgspec

from rocwheel.binary.bundles.compressed import compress_bundle
from rocwheel.binary.bundles.device_code import read_device_code
from rocwheel.binary.bundles.sequence import iter_entries
from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.binary.kind import has_facts
from rocwheel.binary.kpack.write import KernelMeter
from rocwheel.core.compression import DEVICE_CODE_LEVEL, WHEEL_LEVEL
from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.workers import open_workers
from rocwheel.report.values import HOST, Action, Saving, Savings
from rocwheel.targets.compatibility import Fit, fit
from rocwheel.wheels.zip_reader import open_content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    from rocwheel.binary.bundles.device_code import DeviceCode
    from rocwheel.binary.bundles.sequence import Bundle
    from rocwheel.core.progress import Progress
    from rocwheel.core.reading import Data
    from rocwheel.diff.sides import Item, Unpack
    from rocwheel.report.values import FileFacts


def divide(whole: int, weights: Sequence[int]) -> list[int]:
    """Return ``whole`` divided in proportion to the weights.

    The parts add up to ``whole``, and each part differs from its exact share by less than 1. If all weights are 0, they
    are treated as equal. If there are no weights, there are no parts.
    """
    total = sum(weights)
    if not total:
        weights, total = [1] * len(weights), len(weights)
    ends, seen = [0], 0
    for weight in weights:
        seen += weight
        ends.append(whole * seen // total)
    return [stop - start for start, stop in itertools.pairwise(ends)]


_PIECE = 16 << 20
_SAMPLED = 64 << 20
"""The approximate number of bundle bytes per file that are measured for an estimate.

Each measured bundle is measured completely.
"""
_MOST_RAW = 4 << 30


class MeasuredCode(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements of a file's bundles, in bytes.

    In an estimate, the measurements are extrapolated to unmeasured bundles.
    """

    host: int
    """The number of bytes outside of bundles."""
    host_packed: int
    """The size of these bytes after compression, as in a wheel."""
    bundles: int
    compressed: int
    """The size of the bundles after compression."""
    archived: dict[str, int]
    """The size of the code in kpack archives, keyed by target."""
    measured: int
    """The number of bundle bytes that were measured."""


def measure_code(
    item: Item, executor: Executor, *, estimate: bool = False, unpack: Unpack = open_content
) -> MeasuredCode | None:
    """Return the sizes of a file's bundles after compression, or `None` if it has no bundles or is unreadable.

    This function compresses all bundles, or only some of them if ``estimate`` is true. ``unpack`` opens the members of
    wheels. Raises `WorkError` for system errors.
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
    for _, sizes in found:
        for target, size in sizes:
            archived[target] += size
    spans = sorted((bundle.place.offset, bundle.place.offset + bundle.size) for bundle in bundles)
    return MeasuredCode(
        host=len(data) - total,
        host_packed=sum(executor.map(_deflated, _pieces(data, spans))),
        bundles=total,
        compressed=sum(compressed for compressed, _ in found) * total // seen,
        archived={target: size * total // seen for target, size in archived.items()},
        measured=seen,
    )


def _sizes_of(view: Data, bundle: Bundle) -> tuple[int, list[tuple[str, int]]]:
    """Return the compressed size of a bundle, and the size of its code for each target in an archive."""
    compressed = bundle.size
    if bundle.compressed is None and bundle.size < _MOST_RAW:
        raw = [view[bundle.start : bundle.stop]]
        compressed = min(compressed, len(compress_bundle(raw, version=2, level=DEVICE_CODE_LEVEL)))
    return compressed, list(_archived(view, bundle))


def _archived(view: Data, bundle: Bundle) -> Iterator[tuple[str, int]]:
    """Yield the target of each code object and its size in a kpack archive. The objects aren't all held in memory."""
    ordered = sorted(bundle.plain.device_entries, key=lambda entry: entry.offset)
    yield from ((str(entry.target), KernelMeter(0).finish()) for entry in ordered if not entry.size)
    pieces = iter_entries(view, bundle, [entry for entry in ordered if entry.size])
    for entry, found in groupby(pieces, itemgetter(0)):  # in order, because entries don't overlap
        meter = KernelMeter(entry.size)
        for _, piece in found:
            meter.add(piece)
        yield str(entry.target), meter.finish()


def _pieces(data: Data, spans: Sequence[tuple[int, int]]) -> list[Data]:
    """Return the pieces of data outside of ``spans``."""
    gaps, at = [], 0
    for start, stop in spans:
        gaps.append((at, start))
        at = max(at, stop)
    gaps.append((at, len(data)))
    return [data[place : min(place + _PIECE, stop)] for start, stop in gaps for place in range(start, stop, _PIECE)]


def _deflated(piece: Data) -> int:
    return min(len(piece), len(deflate.deflate_compress(bytes(piece), WHEEL_LEVEL)))


def measure_files(
    items: Sequence[Item], files: Sequence[FileFacts], progress: Progress, unpack: Unpack, *, estimate: bool
) -> dict[int, MeasuredCode]:
    """Return the measurements of files with bundles, keyed by index. ``items`` contains the files as inputs."""
    chosen = [place for place, file in enumerate(files) if file.parts]
    progress.begin("measuring possible savings", sum(items[place].size for place in chosen))
    found = {}
    with open_workers() as executor:
        for place in chosen:
            if (code := measure_code(items[place], executor, estimate=estimate, unpack=unpack)) is not None:
                found[place] = code
            progress.advance(items[place].size)
    progress.end()
    return found


_FileSizes = tuple[int, int]


def find_savings(
    files: Sequence[FileFacts],
    measured: Mapping[int, MeasuredCode],
    gpus: Iterable[str],
    *,
    packed: int | None,
    is_estimated: bool,
) -> Savings | None:
    """Return the sizes after each action, or `None` if there is no device code.

    ``measured`` is keyed by index in ``files``.

    Splitting and pruning are computed separately for each of ``gpus``. Every action is compared with the same values:
    the sizes of all files, and ``packed``, the total size of all wheels and sdists, if there are any. The part of
    ``packed`` that doesn't belong to any file remains unchanged.
    """
    if not any(file.parts for file in files):
        return None

    def left(action: Action, gpu: str, after: Callable[[FileFacts, MeasuredCode | None], _FileSizes]) -> Saving:
        pairs = [after(file, measured.get(place)) for place, file in enumerate(files)]
        size, in_wheels = (sum(values) for values in zip(*pairs, strict=True))
        return Saving(action, gpu, before, size, packed, None if packed is None else rest + in_wheels)

    before = sum(file.size for file in files)
    rest = (packed or 0) - sum(file.packed or 0 for file in files)
    rows = [left(Action.COMPRESS, "", _compressed)] if measured else []
    for gpu in gpus:
        serves = _serving(gpu)
        if measured:
            rows.append(left(Action.SPLIT, gpu, partial(_split, serves=serves)))
        rows.append(left(Action.PRUNE, gpu, partial(_pruned, serves=serves)))
    looked_at = sum(code.measured for code in measured.values())
    return Savings(is_estimated, looked_at, sum(code.bundles for code in measured.values()), tuple(rows))


def _serving(gpu: str) -> Callable[[str], bool]:
    """Return a function that returns whether code for a target runs on a GPU, regardless of its feature settings."""
    owned = TargetId(gpu)

    @cache
    def serves(target: str) -> bool:
        try:
            code = parse_target_id(target) if target != HOST else owned
        except InputError:
            return False
        return code.processor == owned.processor or fit(code, owned) is not Fit.NONE

    return serves


def _compressed(file: FileFacts, code: MeasuredCode | None) -> _FileSizes:
    if code is None:
        return file.size, file.packed or 0
    return code.host + code.compressed, _if_packed(code.host_packed + code.compressed, file)


def _split(file: FileFacts, code: MeasuredCode | None, serves: Callable[[str], bool]) -> _FileSizes:
    if code is None:
        return _pruned(file, code, serves)
    archives = sum(size for target, size in code.archived.items() if serves(target))
    return code.host + archives, _if_packed(code.host_packed + archives, file)


def _pruned(file: FileFacts, code: MeasuredCode | None, serves: Callable[[str], bool]) -> _FileSizes:
    if not file.parts:
        return file.size, file.packed or 0
    kept = sum(part.size for part in file.parts if serves(part.target))
    if code is None or file.packed is None:
        return kept, sum(part.packed or 0 for part in file.parts if serves(part.target))
    # Device code and host code have different compression ratios.
    in_bundles = max(file.packed - code.host_packed, 0)
    return kept, file.packed - in_bundles * (file.size - kept) // max(code.bundles, 1)


def _if_packed(packed: int, file: FileFacts) -> int:
    return 0 if file.packed is None else packed
