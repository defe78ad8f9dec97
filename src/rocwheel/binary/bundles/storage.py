"""How an edited bundle is stored: where it was, plain or compressed, in a version that runtimes read.

What it gives back of its place is filled with zeros.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.binary.bundles.compressed import (
    HIGHEST_LEVEL,
    RAW_SIZE_LIMIT,
    VERSION_2_LIMIT,
    CompressedBundle,
    Method,
    compress_bundle,
    header_version,
)
from rocwheel.binary.bundles.plain import RUNTIME_HEADER_LIMIT
from rocwheel.binary.bundles.runtimes import first_reader, is_read_by, parse_rocm
from rocwheel.binary.bundles.sequence import Bundle
from rocwheel.binary.code_objects import NoRoomError
from rocwheel.core.compression import DEVICE_CODE_LEVEL
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.patch import Replacement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.core.reading import Data

logger = logging.getLogger(__name__)


class _Strength(NamedTuple):
    """A zstd level that takes more time: what to expect of it, measured over device code of ROCm."""

    level: int
    speed: float
    """How many megabytes of code one core compresses in a second."""
    gain: float
    """By which factor code becomes smaller at best that was compressed with a level below the one before."""
    step: float
    """By which factor code becomes smaller at best that was compressed with the level before, or one above that."""


_STRONGER = (
    _Strength(9, 178, 1.25, 1.25),
    _Strength(15, 37, 1.35, 1.35),
    _Strength(19, 7.6, 2.0, 2.0),
    _Strength(HIGHEST_LEVEL, 3, 2.16, 1.08),
)
_MUCH = 16 << 20
"""How much code a hopeless level is not tried for, in bytes."""
_LONG = 5
"""From how many seconds on the time of a stronger level is announced."""


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """How edited bundles are stored; raises `InputError` for a ``rocm`` that is not a version."""

    compress: bool = False
    """Whether plain bundles become compressed ones; compressed ones stay so."""
    version: int | None = None
    """The header version to insist on; by default the one that the most ROCm releases read."""
    rocm: str = ""
    """The oldest ROCm release that has to read the result; empty for any that reads compressed bundles."""
    level: int = DEVICE_CODE_LEVEL
    """The zstd level. When a bundle outgrows its place, higher ones are tried."""
    archive_level: int | None = None
    """The zstd level of kpack archives; without one, what is compressed in them stays so."""
    recompress: bool = False
    """Whether compressed bundles are compressed again with the level where that makes them smaller."""
    limit: int = RAW_SIZE_LIMIT
    """How much decompressed code is held in memory at a time, whatever the number of workers, in bytes."""
    check: bool = False
    """Whether compressed bundles that stay as they are, of up to ``limit`` bytes, are read whole to find damage."""
    accept_wrong_hash: bool = False
    """Whether a bundle whose hash is wrong is taken as it is, with a warning in the log, rather than refused."""

    def __post_init__(self) -> None:
        if self.rocm:
            parse_rocm(self.rocm)

    def accepts(self, version: int) -> bool:
        """Return whether a bundle that is compressed in header ``version`` may stay so."""
        if self.version is not None:
            return version == self.version
        return is_read_by(version, self.rocm)


class BundleSlot(msgspec.Struct, frozen=True):
    """A bundle and the place it may take: up to ``stop`` among the bytes it was found in; none if there is no end."""

    bundle: Bundle
    stop: int | None


class BundleChange(msgspec.Struct, frozen=True):
    """What becomes of a bundle: its new size in bytes, and the replacements in its file, in rising order."""

    bundle: Bundle
    size: int
    replacements: tuple[Replacement, ...]

    @property
    def version(self) -> int | None:
        """The header version of the compressed bundle that was written; none for a plain one."""
        return header_version(bytes(self.replacements[0].data[:8]))

    def placed(self, start: int) -> tuple[Replacement, ...]:
        """Return the replacements that put the new bundle, without zeros behind it, at ``start`` instead."""
        by = start - self.replacements[0].start
        written = (change for change in self.replacements if len(change.data))
        return tuple(Replacement.of(change.start + by, change.data) for change in written)


def stronger_level(level: int, raw_size: int, size: int, room: int) -> int | None:
    """Return the next level to try for ``raw_size`` bytes of code, of which ``level`` makes ``size``, for ``room``.

    None is left after the highest. For much code, levels that can't gain so much are left out.
    """
    stronger = [strength for strength in _STRONGER if strength.level > level]
    gains = (one.gain if index else one.step for index, one in enumerate(stronger))
    able = (one.level for one, gain in zip(stronger, gains, strict=True) if raw_size < _MUCH or size <= room * gain)
    return next(able, None)


def announce_level(name: str, raw_size: int, level: int, size: int, room: int) -> None:
    """Say that code is compressed again with a stronger ``level``, and for how long, where that takes seconds."""
    speed = next((strength.speed for strength in _STRONGER if strength.level >= level), _STRONGER[-1].speed)
    seconds = raw_size / speed / 1e6
    text = (
        f"{name}: needs {size / 1e6:.1f} MB, but only {room / 1e6:.1f} MB fit; {raw_size / 1e6:.0f} MB of code are "
        f"compressed again with level {level}, which takes about {seconds:.0f} s"
    )
    logger.log(logging.WARNING if seconds >= _LONG else logging.INFO, "%s", text)


def store_bundle(slot: BundleSlot, raw: list[Data], storage: Storage) -> BundleChange:
    """Return the change that puts the plain bundle ``raw`` in the place of the one in ``slot``.

    Raises `NoRoomError` when it outgrows the place, or when the runtime wouldn't read its header, and `InputError`
    when the runtimes that have to read it don't read any version that can hold it.
    """
    bundle = slot.bundle
    is_plain = bundle.compressed is None and not storage.compress
    if is_plain and len(raw[0]) > RUNTIME_HEADER_LIMIT:
        raise NoRoomError(
            bundle.place,
            f"needs a header of {count(len(raw[0]), 'byte')}",
            expected=f"at most {RUNTIME_HEADER_LIMIT}, which the runtime reads of a plain bundle",
            remedy="Compress the device code (--compress).",
        )
    room = None if slot.stop is None else slot.stop - bundle.start
    level, raw_size = storage.level, sum(map(len, raw))
    version, method = (
        (0, Method.ZSTD) if is_plain else _format_of(bundle.compressed, raw_size, storage, str(bundle.place))
    )
    while True:
        new = raw
        if not is_plain:
            new = [memoryview(compress_bundle(raw, version=version, level=level, method=method))]
        size = sum(map(len, new))
        if room is None or size <= room:
            return BundleChange(bundle, size, tuple(_replace(bundle.place.offset, new, room or size)))
        stronger = None if is_plain else stronger_level(level, raw_size, size, room)
        if stronger is None:
            break
        announce_level(str(bundle.place), raw_size, stronger, size, room)
        level = stronger
    remedy = (
        "Compress the device code to make room (--compress)." if is_plain else "Leave out other targets to make room."
    )
    raise NoRoomError(bundle.place, f"needs {count(size, 'byte')}", expected=f"at most {room}", remedy=remedy)


def _replace(offset: int, buffers: list[Data], room: int) -> Iterator[Replacement]:
    """Yield each buffer as it is, so that a plain bundle is never copied together, and the rest as zeros."""
    stop = offset + room
    for buffer in buffers:
        yield Replacement(offset, offset + len(buffer), buffer)
        offset += len(buffer)
    if offset < stop:
        yield Replacement(offset, stop, b"")


def _format_of(old: CompressedBundle | None, raw_size: int, storage: Storage, source: str) -> tuple[int, Method]:
    method = Method.ZSTD if old is None or old.version == 1 else old.method
    kept = old.version if old and storage.accepts(old.version) else storage.version
    return choose_version(raw_size, rocm=storage.rocm, wanted=kept, source=source), method


def choose_version(raw_size: int, *, rocm: str = "", wanted: int | None = None, source: str) -> int:
    """Return the header version for a plain bundle of ``raw_size`` bytes: the one that the most releases read.

    ``rocm`` is the oldest ROCm that has to read it, ``wanted`` a version to insist on. Raises `InputError`, led by
    ``source``, when that ROCm doesn't read the version, or when the version can't hold the size.
    """
    least = 2 if raw_size < VERSION_2_LIMIT else 3
    version = least if wanted is None else wanted
    if version not in {2, 3}:
        raise InputError(source, f"header version {version}", expected="2 or 3; ROCm doesn't read version 1")
    if version < least:
        raise InputError(
            source, f"a bundle of {count(raw_size, 'byte')}", expected="less than 4 GiB for header version 2"
        )
    if not is_read_by(version, rocm):
        raise InputError(
            source,
            f"compressed bundles of version {version}, which ROCm {rocm} doesn't read",
            expected=f"ROCm {first_reader(version)} or later",
            remedy="Leave the device code uncompressed for that release.",
        )
    return version
