"""Members on their way to where they are written: begun, filled piece by piece, and ended with their digest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.core.reading import ChangedFileError
from rocwheel.wheels.content import Digest, Hasher
from rocwheel.wheels.member_compression import DEFLATED, STORED, WINDOW, stream_bound

if TYPE_CHECKING:
    from rocwheel.wheels.member_compression import Packed, PackedBlock


class Sink(Protocol):
    """Receives packed members one after the other, on the thread that runs the `Packer`."""

    def begin(self, name: str, mode: int, method: int, size: int) -> None:
        """Start a member of at most ``size`` unpacked bytes, packed by ZIP ``method``."""

    def write(self, data: bytes | bytearray | memoryview, sha256: bytes = b"") -> None:
        """Append packed bytes to the member, with their SHA-256 where somebody knows it."""

    def end(self, digest: Digest) -> None:
        """Complete the member; ``digest`` is that of the unpacked bytes."""


class PackedCount(msgspec.Struct, frozen=True):
    """How many members with bytes of files were packed, and how many a cache had; with their bytes, unpacked.

    Members that are stored count for neither, nor does generated text. A member counts as packed if any of its pieces
    was; its bytes are counted by pieces.
    """

    packed: int = 0
    packed_bytes: int = 0
    kept: int = 0
    kept_bytes: int = 0

    def plus(self, *, is_kept: bool, members: int = 0, size: int = 0) -> PackedCount:
        """Return this count with more members, or bytes, added."""
        if is_kept:
            return msgspec.structs.replace(self, kept=self.kept + members, kept_bytes=self.kept_bytes + size)
        return msgspec.structs.replace(self, packed=self.packed + members, packed_bytes=self.packed_bytes + size)

    def since(self, earlier: PackedCount) -> PackedCount:
        """Return what came to an ``earlier`` count until it was this one."""
        mine, before = msgspec.structs.astuple(self), msgspec.structs.astuple(earlier)
        return PackedCount(*(now - then for now, then in zip(mine, before, strict=True)))

    def left(self, other: PackedCount) -> PackedCount:
        """Return this count with all members of another added as kept ones, since they were left where they are."""
        members, size = other.packed + other.kept, other.packed_bytes + other.kept_bytes
        return self.plus(is_kept=True, members=members, size=size)


class Head(msgspec.Struct, frozen=True):
    """What is known of a member before it is packed; ``size`` is that of its content, in bytes."""

    sink: Sink
    name: str
    mode: int
    size: int
    is_counted: bool = True
    """Whether it counts as packed or kept."""

    def begin(self, method: int, bound: int | None = None) -> None:
        """Begin the member, of ``bound`` bytes at most if that is not its size."""
        self.sink.begin(self.name, self.mode, method, self.size if bound is None else bound)


def deliver_whole(head: Head, packed: Packed) -> None:
    """Write a member that is in one piece."""
    head.begin(packed.method)
    head.sink.write(packed.data, packed.sha256)
    head.sink.end(packed.digest)


class BlockMember:
    """Hashes the blocks of a member on their way to the sink, so that the digest is that of the bytes packed."""

    def __init__(self, head: Head, method: int = DEFLATED) -> None:
        self.head = head
        self.are_kept = True
        """Whether a cache had all blocks that were written."""
        self.keys: list[bytes] = []
        """Those of the blocks in a cache."""
        self._method = method
        self._hasher = Hasher()
        self._tail = b""

    def begin(self) -> None:
        """Begin the member."""
        self.head.begin(self._method)

    def write(self, block: PackedBlock) -> None:
        """Write a block; raise `ChangedFileError` unless it was primed with the end of those before it."""
        if block.history != self._tail[len(self._tail) - len(block.history) :]:
            raise ChangedFileError(self.head.name, "was written to while it was being packed")
        self._hasher.update(block.original)
        self._tail = (self._tail + block.original[-WINDOW:])[-WINDOW:]
        self.keys.append(block.key)
        self.are_kept = self.are_kept and block.is_kept
        self.head.sink.write(block.data, block.sha256)

    def end(self) -> Digest:
        """End the member, and return its digest."""
        digest = self._hasher.digest()
        self.head.sink.end(digest)
        return digest


class RecalledMember:
    """Takes the blocks of a member whose digest is known to the sink."""

    def __init__(self, head: Head, method: int, digest: Digest) -> None:
        self.head = head
        self.are_kept = True
        self._method = method
        self._digest = digest

    def begin(self) -> None:
        """Begin the member."""
        self.head.begin(self._method)

    def write(self, block: PackedBlock) -> None:
        """Write a block."""
        self.are_kept = self.are_kept and block.is_kept
        self.head.sink.write(block.data, block.sha256)

    def end(self) -> Digest:
        """End the member, and return its digest."""
        self.head.sink.end(self._digest)
        return self._digest


class EncodedMember:
    """Hashes the pieces of a compressed stream on their way to the sink."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.are_kept = True
        self._hasher = Hasher()

    def begin(self) -> None:
        """Begin the member."""
        # The size is known at the end only.
        self.head.begin(STORED, stream_bound(self.head.size))

    def write(self, block: PackedBlock) -> None:
        """Write a piece."""
        self.are_kept = self.are_kept and block.is_kept
        self.head.sink.write(block.data, block.sha256)
        self._hasher.update(block.data)

    def end(self) -> Digest:
        """End the member, and return its digest."""
        digest = self._hasher.digest()
        self.head.sink.end(digest)
        return digest
