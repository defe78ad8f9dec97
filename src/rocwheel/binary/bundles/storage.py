"""Stores an edited bundle in place of the old one, either plain or compressed, in a version that runtimes can read.

Zeros fill the rest of the old bundle's space.
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
    """A stronger zstd level and its expected results, measured with ROCm device code."""

    level: int
    speed: float
    """The number of megabytes of code that one core compresses per second."""
    gain: float
    """The largest factor by which this level shrinks code that was compressed at a level below the previous one."""
    step: float
    """The largest factor by which this level shrinks code that was compressed at the previous level or above it."""


_STRONGER = (
    _Strength(9, 178, 1.25, 1.25),
    _Strength(15, 37, 1.35, 1.35),
    _Strength(19, 7.6, 2.0, 2.0),
    _Strength(HIGHEST_LEVEL, 3, 2.16, 1.08),
)
_MUCH = 16 << 20
"""The minimum size, in bytes, of code that isn't compressed again at levels that can't make it small enough."""
_LONG = 5
"""A compression at a stronger level is announced if it takes at least this many seconds."""


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for storing edited bundles; raises `InputError` if ``rocm`` isn't a version."""

    compress: bool = False
    """Whether to compress plain bundles; compressed bundles stay compressed."""
    version: int | None = None
    """The required header version, or `None` for the version that the most ROCm releases read."""
    rocm: str = ""
    """The oldest ROCm release that must read the result, or an empty string for any release that reads compressed
    bundles.
    """
    level: int = DEVICE_CODE_LEVEL
    """The zstd level. If a bundle doesn't fit, higher levels are tried."""
    archive_level: int | None = None
    """The zstd level for kpack archives, or `None` to keep their compressed code unchanged."""
    recompress: bool = False
    """Whether to compress compressed bundles again at ``level`` if that makes them smaller."""
    limit: int = RAW_SIZE_LIMIT
    """The maximum size in bytes of decompressed code in memory at one time, regardless of the number of workers."""
    check: bool = False
    """Whether to read unchanged compressed bundles of up to ``limit`` bytes completely, to find damage."""
    accept_wrong_hash: bool = False
    """Whether to accept a bundle with an incorrect hash and log a warning, instead of refusing it."""

    def __post_init__(self) -> None:
        if self.rocm:
            parse_rocm(self.rocm)

    def accepts(self, version: int) -> bool:
        """Return whether a compressed bundle with this header version may stay unchanged."""
        if self.version is not None:
            return version == self.version
        return is_read_by(version, self.rocm)


class BundleSlot(msgspec.Struct, frozen=True):
    """A bundle and the space available for it, which ends at ``stop``, or has no end if ``stop`` is `None`."""

    bundle: Bundle
    stop: int | None


class BundleChange(msgspec.Struct, frozen=True):
    """The result for a bundle: its new size in bytes, and the replacements in its file, in ascending order."""

    bundle: Bundle
    size: int
    replacements: tuple[Replacement, ...]

    @property
    def version(self) -> int | None:
        """The header version of the compressed bundle that was written, or `None` for a plain bundle."""
        return header_version(bytes(self.replacements[0].data[:8]))

    def placed(self, start: int) -> tuple[Replacement, ...]:
        """Return the replacements that put the new bundle at ``start`` instead, without the zeros after the bundle."""
        by = start - self.replacements[0].start
        written = (change for change in self.replacements if len(change.data))
        return tuple(Replacement.of(change.start + by, change.data) for change in written)


def stronger_level(level: int, raw_size: int, size: int, room: int) -> int | None:
    """Return the next level to try if ``level`` shrinks ``raw_size`` bytes of code to ``size``, which exceeds ``room``.

    Returns `None` if there are no more levels. For a large amount of code, skips levels that can't reduce the size
    enough.
    """
    stronger = [strength for strength in _STRONGER if strength.level > level]
    gains = (one.gain if index else one.step for index, one in enumerate(stronger))
    able = (one.level for one, gain in zip(stronger, gains, strict=True) if raw_size < _MUCH or size <= room * gain)
    return next(able, None)


def announce_level(name: str, raw_size: int, level: int, size: int, room: int) -> None:
    """Log that the code is being compressed again at a stronger ``level``, and how long that takes."""
    speed = next((strength.speed for strength in _STRONGER if strength.level >= level), _STRONGER[-1].speed)
    seconds = raw_size / speed / 1e6
    text = (
        f"{name}: needs {size / 1e6:.1f} MB, but only {room / 1e6:.1f} MB fit; compressing {raw_size / 1e6:.0f} "
        f"MB of code again at level {level}, which takes about {seconds:.0f} s"
    )
    logger.log(logging.WARNING if seconds >= _LONG else logging.INFO, "%s", text)


def store_bundle(slot: BundleSlot, raw: list[Data], storage: Storage) -> BundleChange:
    """Return the change that stores the plain bundle ``raw`` in place of the bundle in ``slot``.

    Raises `NoRoomError` if the bundle doesn't fit or the runtime wouldn't read its entire header. Raises `InputError`
    if the required runtimes can't read any version that supports the bundle's size.
    """
    bundle = slot.bundle
    is_plain = bundle.compressed is None and not storage.compress
    if is_plain and len(raw[0]) > RUNTIME_HEADER_LIMIT:
        raise NoRoomError(
            bundle.place,
            f"needs a header of {count(len(raw[0]), 'byte')}",
            expected=f"at most {RUNTIME_HEADER_LIMIT}, the part of a plain bundle that the runtime reads",
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
        "Compress the device code to make room (--compress)." if is_plain else "Leave out more targets to make room."
    )
    raise NoRoomError(bundle.place, f"needs {count(size, 'byte')}", expected=f"at most {room}", remedy=remedy)


def _replace(offset: int, buffers: list[Data], room: int) -> Iterator[Replacement]:
    """Yield each buffer unchanged, so that a plain bundle is never copied, and then zeros for the rest of the space."""
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
    """Return the header version that the most releases can read, for a plain bundle of ``raw_size`` bytes.

    ``rocm`` is the oldest ROCm release that must read the bundle, and ``wanted`` is a required version. Raises
    `InputError` about ``source`` if that release can't read the version, or if the version doesn't support the size.
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
