"""Wheels of an earlier build that need not be written again, as they would be the same.

Such a wheel is left alone. What it is made of is known by the plan and the stamps of all its inputs; that it still has
its bytes, by its own stamp. Where that is another one, or too new to tell, the hashes of its parts tell.
"""

from __future__ import annotations

import hashlib
import stat
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import rocwheel
from rocwheel.core.hashing import Seal, is_intact
from rocwheel.core.python import source_hash
from rocwheel.core.reading import FileRange, FileStamp, is_settled
from rocwheel.distributions.packing.codec_identity import codec_identity, xz_identity
from rocwheel.distributions.packing.delivery import PackedCount
from rocwheel.distributions.packing.origin import is_known
from rocwheel.packages.plan import FileMember, TarMember

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from rocwheel.core.cache import Store
    from rocwheel.distributions.formats.source_date import SourceDate
    from rocwheel.distributions.formats.write_wheel import WrittenWheel
    from rocwheel.packages.plan import Member, PlannedWheel

__all__ = ["Standing", "StandingWheels"]

_MODE = 0o644


class _Note(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a wheel that was written."""

    stamp: FileStamp
    seal: Seal
    members: PackedCount
    sha256: str
    """Of the whole file, in hexadecimal digits."""
    is_settled: bool = False
    """Whether a change after its bytes were looked at would show in its stamp."""


class Standing(msgspec.Struct, frozen=True):
    """A wheel that stands there as it would be written."""

    members: PackedCount
    sha256: str
    """Of the file, in hexadecimal digits."""


class StandingWheels:
    """Tells which wheels stand there already, by notes in a store; ``level`` and ``date`` are those of the build."""

    def __init__(self, store: Store, level: int, date: SourceDate) -> None:
        self._store = store
        self._settings = (level, date.seconds, msgspec.structs.astuple(date.zip_time))
        self._keys: dict[Path, bytes] = {}

    def find(self, wheel: PlannedWheel, path: Path, executor: Executor) -> Standing | None:
        """Return a wheel that stands at ``path`` as it would be written; else none.

        Workers of the ``executor`` hash a wheel whose stamp does not tell.
        """
        key = self._key(wheel, path)
        if key is None:
            return None
        self._keys[path] = key
        entry = self._store.get(key)
        status = _status(path)
        if entry is None or status is None:
            return None
        note, stamp = msgspec.msgpack.decode(entry.facts, type=_Note), FileStamp.of(status)
        if note.is_settled and note.stamp == stamp:
            return Standing(note.members, note.sha256)
        read_at = time.time_ns()
        if not is_intact(FileRange(str(path), 0, stamp.size, stamp), note.seal, executor):
            return None
        self._keep(key, msgspec.structs.replace(note, stamp=stamp, is_settled=is_settled(stamp, read_at)))
        return Standing(note.members, note.sha256)

    def note(self, written: WrittenWheel) -> None:
        """Keep what a wheel is like that was written after `find` had not found it."""
        if key := self._keys.get(written.path):
            self._keep(key, _Note(written.stamp, written.seal, written.members, written.sha256))

    def _keep(self, key: bytes, note: _Note) -> None:
        self._store.put(key, msgspec.msgpack.encode(note))

    def _key(self, wheel: PlannedWheel, path: Path) -> bytes | None:
        """Return what is another value wherever the wheel would have other bytes; none if only reading tells that."""
        now = time.time_ns()
        members = [*wheel.members, *wheel.licenses]
        if not all(is_known(file.source, now) for member in members for file in _files(member)):
            return None
        has_xz = any(isinstance(member, TarMember) and member.compression == "xz" for member in members)
        identity = _identity() + (xz_identity() if has_xz else b"")
        try:
            described = msgspec.msgpack.encode(("standing", identity, self._settings, str(path.absolute()), wheel))
        except UnicodeEncodeError:  # a name that is no text
            return None
        return hashlib.sha256(described).digest()


@cache
def _identity() -> bytes:
    """Return what differs wherever the same plan may give other bytes: between versions of the code and of codecs."""
    return source_hash(Path(rocwheel.__file__).parent) + codec_identity()


def _files(member: Member) -> Iterator[FileMember]:
    if isinstance(member, FileMember):
        yield member
    elif isinstance(member, TarMember):
        yield from (entry.file for entry in member.entries if entry.file)


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a file that has the mode of wheels; none for anything else."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) == _MODE else None
