"""What workers are told, and the small records that they send back; the bytes stay in the exchange."""

from __future__ import annotations

import msgspec

from rocwheel.cluster.versions import WorkerFacts
from rocwheel.distributions.content.digest import Digest
from rocwheel.distributions.packing.spans import CutFacts, Span
from rocwheel.distributions.zip.writer import ZipTime
from rocwheel.packages.clustered.exchange import Exchange
from rocwheel.packages.plan import PlannedWheel

__all__ = [
    "Assembly",
    "Cut",
    "Hashed",
    "Opening",
    "Packed",
    "PackedMember",
    "Piece",
    "Section",
    "Settings",
    "StoredPiece",
    "WrittenWheel",
]


class Settings(msgspec.Struct, frozen=True):
    """What is the same for all tasks of a build."""

    exchange: Exchange
    level: int
    mtime: int
    """Seconds since 1970 that date the members of tars."""
    facts: WorkerFacts
    """Those of the process that began the build: workers may join that are others."""


class Opening(msgspec.Struct, frozen=True):
    """What a member of a wheel is begun with."""

    name: str
    mode: int
    method: int
    bound: int
    """Bytes at most, unpacked."""


class PackedMember(msgspec.Struct, frozen=True):
    """A member that was packed whole, to ``size`` bytes."""

    opening: Opening
    size: int
    digest: Digest


class StoredPiece(msgspec.Struct, frozen=True):
    """Packed bytes in the exchange."""

    name: str
    size: int
    sha256: str


class Packed(msgspec.Struct, frozen=True):
    """The members of a group, from the ``first`` on: all of it, or those of one of its parts."""

    first: int
    piece: StoredPiece
    members: tuple[PackedMember, ...]


class Cut(msgspec.Struct, frozen=True):
    """A span of a cut member."""

    span: Span
    piece: StoredPiece
    facts: CutFacts


class Hashed(msgspec.Struct, frozen=True):
    """The digest of a cut member, and the CRC-32 of each of its spans."""

    digest: Digest
    crc32s: tuple[int, ...]


class Section(msgspec.Struct, frozen=True):
    """Bytes of a piece that belong to one member."""

    size: int
    opening: Opening | None = None
    """None where an earlier section has begun the member."""
    digest: Digest | None = None
    """That of the unpacked member, at its last section; none for a stream of its own."""
    is_last: bool = True
    is_encoded: bool = False
    """Whether the member is a stream of its own, whose digest is that of what is written."""


class Piece(msgspec.Struct, frozen=True):
    """A stored piece, and what is in it."""

    stored: StoredPiece
    sections: tuple[Section, ...]


class Assembly(msgspec.Struct, frozen=True):
    """A wheel to be put together."""

    wheel: PlannedWheel
    """Without its members."""
    pieces: tuple[Piece, ...]
    moment: ZipTime
    destination: str
    """The folder, or the URL of a store, that it goes to."""


class WrittenWheel(msgspec.Struct, frozen=True):
    """A wheel that has its name."""

    path: str
    size: int
    sha256: str
    """Of the file, in hexadecimal digits."""
