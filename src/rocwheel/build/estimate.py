"""Estimates the sizes of a plan's distributions and the packing time, from samples of their files."""

from __future__ import annotations

import hashlib
import time
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import deflate
import msgspec

from rocwheel.build.members import is_compressed, planned_size, wheel_members
from rocwheel.build.plan import TarMember, TextMember, member_files
from rocwheel.core.compression import WHEEL_LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Executor

    from rocwheel.build.members import PlacedMember
    from rocwheel.build.plan import Plan, PlannedWheel
    from rocwheel.core.reading import FileRange

_SAMPLE = 128 << 10
"""The size of a sample in bytes, which is four times deflate's window."""
_SAMPLE_EVERY = 16 << 20
_FEWEST, _MOST = 8, 64
"""The minimum and maximum number of samples per wheel. A wheel with less data than the minimum is packed completely."""
_MEMBER_BYTES = 140
"""The overhead of a member in a wheel, excluding its content and name.

The name is stored twice, and again in RECORD.
"""


class PlannedSize(msgspec.Struct, frozen=True):
    """The number of files in a distribution, and their total size in bytes before edits."""

    distribution: str
    folder: str
    """The distribution's folder below the dist folder; empty for the dist folder itself."""
    files: int
    size: int
    packed: int | None = None
    """The estimated file size, or an upper bound if device code is compressed; `None` if there is no estimate."""


class Estimate(msgspec.Struct, frozen=True):
    """The estimated sizes of a plan's distributions, in order, and the CPU time for packing and hashing, in seconds."""

    sizes: tuple[PlannedSize, ...]
    cpu_seconds: float


def planned_sizes(plan: Plan) -> tuple[PlannedSize, ...]:
    """Return the number and total size of files in each of a plan's distributions, in order."""
    sizes = []
    for wheel in plan.wheels:
        members = [placed.member for placed in wheel_members(wheel)]
        files = sum(len(member.entries) if isinstance(member, TarMember) else 1 for member in wheel.members)
        texts = sum(len(member.text.encode()) for member in members if isinstance(member, TextMember))
        sizes.append(PlannedSize(wheel.name.distribution, wheel.folder, files, planned_size(members) + texts))
    for sdist in plan.sdists:
        size = sum(len(text.encode()) for text in sdist.files.values())
        sizes.append(PlannedSize(sdist.distribution, sdist.folder, len(sdist.files), size))
    return tuple(sizes)


def estimate(plan: Plan, executor: Executor, level: int = WHEEL_LEVEL) -> Estimate:
    """Estimate the file sizes of a plan's distributions from samples that are deflated at ``level``.

    Raises `InputError` if a file can't be read.
    """
    wheels = list(executor.map(lambda wheel: _pack_wheel(wheel, level), plan.wheels))
    sdists = [_packed_size("".join(sdist.files.values()).encode(), level) for sdist in plan.sdists]
    both = zip(planned_sizes(plan), [*(size for size, _ in wheels), *sdists], strict=True)
    sizes = tuple(msgspec.structs.replace(one, packed=size) for one, size in both)
    return Estimate(sizes, sum(seconds for _, seconds in wheels))


def _pack_wheel(wheel: PlannedWheel, level: int) -> tuple[int, float]:
    """Return the approximate size of a wheel, and the CPU time for packing it in seconds."""
    members = wheel_members(wheel)
    fixed = sum(map(_bytes_beside, members))
    files = [placed.member for placed in members]
    stored = planned_size([member for member in files if is_compressed(member)])
    ranges = [file.source for member in files if not is_compressed(member) for file in member_files(member)]
    total, sampled, packed, began = sum(source.size for source in ranges), 0, 0, time.thread_time()
    for piece in _pieces(ranges, total):
        data = piece.read()
        sampled += len(data)
        packed += _packed_size(data, level)
        for _ in ("the artifact's hash", "that in RECORD"):
            hashlib.sha256(data)
    share = total / sampled if sampled else 0
    return fixed + stored + round(packed * share), (time.thread_time() - began) * share


def _bytes_beside(placed: PlacedMember) -> int:
    """Return the approximate size of a member's overhead, which is everything except the content of its files."""
    text = placed.member.text.encode() if isinstance(placed.member, TextMember) else b""
    return _MEMBER_BYTES + 2 * len(placed.name) + (_packed_size(text, 1) if text else 0)


def _pieces(ranges: Sequence[FileRange], total: int) -> Iterator[FileRange]:
    """Yield evenly spaced samples from all files, which are treated as one concatenated file."""
    if total <= _FEWEST * _SAMPLE:
        yield from (source for source in ranges if source.size)
        return
    count = min(max(_FEWEST, total // _SAMPLE_EVERY), _MOST)
    starts = [(total - _SAMPLE) * number // (count - 1) for number in range(count)]
    first = 0
    for source in ranges:
        last = first + source.size
        for start in starts[bisect_right(starts, first - _SAMPLE) : bisect_left(starts, last)]:
            yield source.part(max(start, first) - first, min(start + _SAMPLE, last) - first)
        first = last


def _packed_size(data: bytes, level: int) -> int:
    return len(deflate.deflate_compress(data, level)) if level else len(data)
