"""Packs many members on an executor, ahead of the single writer and within a memory budget."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from zlib_ng import zlib_ng

from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import ChangedFileError
from rocwheel.wheels.content import BytesContent, Digest, EditedContent, Hasher, digest_content
from rocwheel.wheels.member_cache import KnownMember, MemberCache, known_ranges
from rocwheel.wheels.member_compression import (
    BLOCK,
    DEFLATED,
    ENCODER_MEMORY,
    STORED,
    STREAM_PIECE,
    WHOLE_LIMIT,
    WINDOW,
    Packed,
    PackedBlock,
    compress_piece,
    deflate_block,
    expected_size,
    is_worthwhile,
    pack_whole,
    piece_ranges,
    store_block,
    store_whole,
    stream_bound,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor, Future

    from rocwheel.core.cache import EntryStore
    from rocwheel.wheels.content import Content
    from rocwheel.wheels.member_compression import StreamFormat


class Sink(Protocol):
    """Receives packed members in sequence, on the thread that runs the `Packer`."""

    def begin(self, name: str, mode: int, method: int, size: int) -> None:
        """Start a member of at most ``size`` unpacked bytes, packed with the ZIP ``method``."""

    def write(self, data: bytes | bytearray | memoryview, sha256: bytes = b"") -> None:
        """Append packed bytes to the member, with their SHA-256 if it is known."""

    def end(self, digest: Digest) -> None:
        """Finish the member; ``digest`` is the digest of the unpacked bytes."""


class PackedCount(msgspec.Struct, frozen=True):
    """Counts file members that were packed and file members from a cache, with their unpacked sizes.

    Stored members and generated text aren't counted. A member counts as packed if at least one of its pieces was
    packed. Its bytes are counted separately for each piece.
    """

    packed: int = 0
    packed_bytes: int = 0
    kept: int = 0
    kept_bytes: int = 0

    def plus(self, *, is_kept: bool, members: int = 0, size: int = 0) -> PackedCount:
        """Return this count with more members or bytes added."""
        if is_kept:
            return msgspec.structs.replace(self, kept=self.kept + members, kept_bytes=self.kept_bytes + size)
        return msgspec.structs.replace(self, packed=self.packed + members, packed_bytes=self.packed_bytes + size)

    def since(self, earlier: PackedCount) -> PackedCount:
        """Return the difference between this count and an ``earlier`` count."""
        mine, before = msgspec.structs.astuple(self), msgspec.structs.astuple(earlier)
        return PackedCount(*(now - then for now, then in zip(mine, before, strict=True)))

    def left(self, other: PackedCount) -> PackedCount:
        """Return this count plus all members in another count, which count as cached because they stayed in place."""
        members, size = other.packed + other.kept, other.packed_bytes + other.kept_bytes
        return self.plus(is_kept=True, members=members, size=size)


class Head(msgspec.Struct, frozen=True):
    """Information about a member before it is packed; ``size`` is the size of its content in bytes."""

    sink: Sink
    name: str
    mode: int
    size: int
    is_counted: bool = True
    """Whether the member is included in the counts of packed and cached members."""

    def begin(self, method: int, bound: int | None = None) -> None:
        """Begin the member; ``bound`` is the maximum number of bytes, if it differs from the member's size."""
        self.sink.begin(self.name, self.mode, method, self.size if bound is None else bound)


class _PiecewiseMember:
    """A member that is passed to the sink in pieces: it is begun, written, and ended with its digest."""

    def __init__(self, head: Head, method: int, bound: int | None = None) -> None:
        self.head = head
        self.are_kept = True
        """Whether all pieces written so far came from a cache."""
        self._method = method
        self._bound = bound
        self._hasher = Hasher()

    def begin(self) -> None:
        """Begin the member."""
        self.head.begin(self._method, self._bound)

    def write(self, block: PackedBlock) -> None:
        """Write a piece."""
        self.are_kept = self.are_kept and block.is_kept
        self.head.sink.write(block.data, block.sha256)

    def end(self) -> Digest:
        """End the member and return its digest."""
        digest = self._digest()
        self.head.sink.end(digest)
        return digest

    def _digest(self) -> Digest:
        return self._hasher.digest()


class BlockMember(_PiecewiseMember):
    """Hashes the blocks of a member as they are passed to the sink, so that the digest matches the packed bytes."""

    def __init__(self, head: Head, method: int = DEFLATED) -> None:
        super().__init__(head, method)
        self.keys: list[bytes] = []
        """The cache keys of the member's blocks."""
        self._tail = b""

    def write(self, block: PackedBlock) -> None:
        """Write a block. Raises `ChangedFileError` unless the block was primed with the end of the preceding blocks."""
        if block.history != self._tail[len(self._tail) - len(block.history) :]:
            raise ChangedFileError(self.head.name, "changed while it was being packed")
        self._hasher.update(block.original)
        self._tail = (self._tail + block.original[-WINDOW:])[-WINDOW:]
        self.keys.append(block.key)
        super().write(block)


class RecalledMember(_PiecewiseMember):
    """Passes the blocks of a member with a known digest to the sink."""

    def __init__(self, head: Head, known: KnownMember) -> None:
        super().__init__(head, known.method)
        self._known = known

    def _digest(self) -> Digest:
        return self._known.digest


class EncodedMember(_PiecewiseMember):
    """Hashes the pieces of a compressed stream as the sink receives them, because the size is known only at the end."""

    def __init__(self, head: Head) -> None:
        super().__init__(head, STORED, stream_bound(head.size))

    def write(self, block: PackedBlock) -> None:
        """Write a piece."""
        super().write(block)
        self._hasher.update(block.data)


class Schedule:
    """Submits tasks and delivers their results in the order in which the tasks were added.

    Each task has a cost in bytes. The total cost of submitted but undelivered tasks stays within ``budget``, unless
    there is only one task.
    """

    def __init__(self, executor: Executor, budget: int) -> None:
        self.executor = executor
        self._budget = budget
        self._pending: deque[tuple[Future[Any] | None, int, Callable[[Any], object]]] = deque()
        self._in_flight = 0

    def submit(self, cost: int, deliver: Callable[[Any], object], task: Callable[..., Any], *args: object) -> None:
        """Add a task; ``deliver`` receives its result. Blocks while the budget is exhausted."""
        while self._pending and self._in_flight + cost > self._budget:
            self._deliver_next()
        self._in_flight += cost
        self._pending.append((self.executor.submit(task, *args), cost, deliver))
        while self._pending and (self._pending[0][0] is None or self._pending[0][0].done()):
            self._deliver_next()

    def call(self, function: Callable[[], object]) -> None:
        """Add a call that is executed after everything added so far has been delivered."""
        self._pending.append((None, 0, lambda _: function()))

    def drain(self) -> None:
        """Deliver all pending results."""
        while self._pending:
            self._deliver_next()

    def cancel(self) -> None:
        """Discard everything that has not been delivered."""
        for future, _, _ in self._pending:
            if future is not None:
                future.cancel()
        self._pending.clear()

    def _deliver_next(self) -> None:
        future, cost, deliver = self._pending.popleft()
        deliver(None if future is None else future.result())
        self._in_flight -= cost


# Eleven blocks and their results are enough for two workers while another block waits for a large member.
PACKING_BUDGET: Final = 368 << 20
_STORED_WHOLE = 32 << 20


def budget_for(workers: int) -> int:
    """Return the budget that keeps this number of workers busy with a single large member at a time."""
    return min(PACKING_BUDGET, (workers + 2) * 2 * BLOCK)


class Packer:
    """Schedules packing on an executor, and delivers to sinks in the order in which members were added.

    A budget in bytes limits the work in progress: the sum of the workers' input and output, as estimated from samples.
    Members in the ``kept`` store aren't packed again, and newly packed members are added to the store.
    """

    def __init__(
        self,
        executor: Executor,
        level: int,
        *,
        progress: Progress = SILENT,
        budget: int = PACKING_BUDGET,
        whole_limit: int = WHOLE_LIMIT,
        kept: EntryStore | None = None,
    ) -> None:
        self.count = PackedCount()
        """The members that were already delivered."""
        self._schedule = Schedule(executor, budget)
        self._level = level
        self._progress = progress
        self._whole_limit = whole_limit
        self._cache = MemberCache(kept, level, whole_limit) if kept is not None else None

    def add(self, sink: Sink, name: str, mode: int, content: Content) -> None:
        """Schedule a member. Blocks while the budget is exhausted."""
        is_text = isinstance(content, BytesContent)
        cache = None if is_text or not self._level else self._cache
        if cache and (known := self._find(cache, content)):
            self._add_known(cache, Head(sink, name, mode, known.digest.size), content, known)
            return
        if isinstance(content, EditedContent):
            content.planned(self._schedule.executor)
        head = Head(sink, name, mode, content.size, is_counted=not is_text)
        expected = expected_size(content) if self._level else content.size
        if self._level == 0 or not is_worthwhile(content.size, expected):
            if cache and isinstance(content, EditedContent) and content.is_costly:
                self._add_edited(cache, head, content)
            else:
                self.add_stored(sink, name, mode, content)
        elif content.size <= self._whole_limit:
            cost = content.size + min(content.size, expected * 5 // 4)
            task = (cache.pack_whole, content) if cache else (pack_whole, content, self._level)
            self._schedule.submit(cost, partial(self._deliver_whole, head), *task)
        else:
            self._add_deflated(head, content)

    def add_encoded(self, sink: Sink, name: str, mode: int, content: Content, encoding: StreamFormat) -> None:
        """Schedule a member whose content is compressed into its own stream, which ZIP then stores."""
        encoder = EncodedMember(Head(sink, name, mode, content.size))
        compress = self._cache.compress_piece if self._cache else compress_piece
        deliver_piece = self._deliver_block if self._cache else self._deliver_piece
        self.call(encoder.begin)
        for start, stop in piece_ranges(content, STREAM_PIECE):
            deliver = partial(deliver_piece, encoder, stop - start)
            cost = 2 * (stop - start) + ENCODER_MEMORY
            self._schedule.submit(cost, deliver, compress, content, start, stop, encoding)
        self.call(partial(self._end, encoder))

    def call(self, function: Callable[[], object]) -> None:
        """Schedule a call that is executed after everything added so far has been delivered."""
        self._schedule.call(function)

    def drain(self) -> None:
        """Deliver all pending results."""
        self._schedule.drain()

    def cancel(self) -> None:
        """Discard everything that has not been delivered."""
        self._schedule.cancel()

    def add_stored(self, sink: Sink, name: str, mode: int, content: Content) -> None:
        """Schedule a member that is stored unchanged, because it is already compressed."""
        head = Head(sink, name, mode, content.size, is_counted=False)
        if content.size <= _STORED_WHOLE:
            self._schedule.submit(content.size, partial(self._deliver_whole, head), store_whole, content)
        else:
            member = BlockMember(head, STORED)
            self._add_blocks(member, content, store_block)
            self.call(member.end)

    def _find(self, cache: MemberCache, content: Content) -> KnownMember | None:
        """Return the cached member for the content, or `None` if it isn't cached or reading it isn't worthwhile."""
        digest = cache.digest_of(content)
        if digest is None and isinstance(content, EditedContent) and content.is_costly:
            digest = self._schedule.executor.submit(cache.digest_of_edited, content).result()
        elif digest is None and content.size > self._whole_limit and cache.may_have(content):
            digest = self._schedule.executor.submit(digest_content, content).result()
            cache.note(content, digest)
        return cache.find(content, digest) if digest else None

    def _add_known(self, cache: MemberCache, head: Head, content: Content, known: KnownMember) -> None:
        if not known.blocks:
            deliver = partial(self._deliver_whole, head)
            self._schedule.submit(head.size, deliver, cache.recall_whole, content, known.digest)
            return
        member = RecalledMember(head, known)
        self.call(member.begin)
        for key, (start, stop) in zip(known.blocks, known_ranges(content, known.digest), strict=True):
            deliver = partial(self._deliver_block, member, stop - start)
            self._schedule.submit(stop - start, deliver, cache.recall_block, key, known.method, content, start, stop)
        self.call(partial(self._end, member))

    def _add_edited(self, cache: MemberCache, head: Head, content: EditedContent) -> None:
        """Add an edited member that is stored uncompressed, so that the cache can store it for the next build."""
        if content.size <= _STORED_WHOLE:
            self._schedule.submit(2 * content.size, partial(self._deliver_whole, head), cache.store_edited, content)
            return
        member = BlockMember(head, STORED)
        self._add_blocks(member, content, cache.store_block)
        self.call(partial(self._end, member, partial(cache.keep_blocks, content, STORED)))

    def _add_deflated(self, head: Head, content: Content) -> None:
        member, cache = BlockMember(head), self._cache
        if cache:
            self._add_blocks(member, content, cache.deflate_block)
            self.call(partial(self._end, member, partial(cache.keep_blocks, content, DEFLATED)))
        else:
            self._add_blocks(member, content, deflate_block, self._level)
            self.call(partial(self._end, member))

    def _add_blocks(
        self, member: BlockMember, content: Content, pack: Callable[..., PackedBlock], *options: int
    ) -> None:
        self.call(member.begin)
        for start, stop in piece_ranges(content, BLOCK):
            deliver = partial(self._deliver_block, member, stop - start)
            self._schedule.submit(2 * (stop - start), deliver, pack, content, start, stop, *options)

    def _deliver_whole(self, head: Head, packed: Packed) -> None:
        head.begin(packed.method)
        head.sink.write(packed.data, packed.sha256)
        head.sink.end(packed.digest)
        self._progress.advance(head.size)
        if head.is_counted:
            self.count = self.count.plus(is_kept=packed.is_kept, members=1, size=head.size)

    def _deliver_block(self, member: _PiecewiseMember, size: int, block: PackedBlock) -> None:
        member.write(block)
        self._progress.advance(size)
        if member.head.is_counted:
            self.count = self.count.plus(is_kept=block.is_kept, size=size)

    def _deliver_piece(self, member: EncodedMember, size: int, data: bytes) -> None:
        self._deliver_block(member, size, PackedBlock(data, b""))

    def _end(
        self,
        member: _PiecewiseMember,
        keep: Callable[[Digest, list[bytes]], None] | None = None,
    ) -> None:
        digest = member.end()
        self.count = self.count.plus(is_kept=member.are_kept, members=1)
        if keep and isinstance(member, BlockMember):
            keep(digest, member.keys)


CUT_FROM = WHOLE_LIMIT + (16 << 20)
"""The minimum size in bytes of a file that can be packed in parts.

Such a file is split into blocks, regardless of how its run path is edited.
"""


class Span(msgspec.Struct, frozen=True):
    """The pieces of content that begin at or after ``start`` and, if ``stop`` is set, before ``stop``."""

    start: int
    stop: int | None = None

    def ranges(self, content: Content, piece: int) -> list[tuple[int, int]]:
        """Return the (start, stop) pairs of the pieces of at most ``piece`` bytes."""
        cuts = piece_ranges(content, piece)
        return [cut for cut in cuts if self.start <= cut[0] and (self.stop is None or cut[0] < self.stop)]


class CutFacts(msgspec.Struct, frozen=True):
    """The information needed to begin a member, and the CRC-32 of the unpacked bytes of a span."""

    method: int
    bound: int
    """The maximum size of the member in bytes."""
    crc32: int = 0


def level_for(content: Content, level: int) -> int:
    """Return the compression level for all spans of the content, or 0 (store only) if samples show little savings."""
    return level if level and is_worthwhile(content.size, expected_size(content)) else 0


def pack_span(content: Content, span: Span, level: int, write: Callable[[bytes | memoryview], object]) -> CutFacts:
    """Pack a span of content larger than `WHOLE_LIMIT` block by block, and pass each packed block to ``write``.

    ``level`` is the result of `level_for` for the content, or 0 for content that is always stored.
    """
    crc32, is_deflated = 0, level > 0
    for start, stop in span.ranges(content, BLOCK):
        block = deflate_block(content, start, stop, level) if is_deflated else store_block(content, start, stop)
        crc32 = zlib_ng.crc32(block.original, crc32)
        write(block.data)
    return CutFacts(DEFLATED if is_deflated else STORED, content.size, crc32)


def encode_span(
    content: Content, span: Span, encoding: StreamFormat, write: Callable[[bytes | memoryview], object]
) -> CutFacts:
    """Compress a span of the content into separate streams, and pass each stream to ``write``."""
    for start, stop in span.ranges(content, STREAM_PIECE):
        write(compress_piece(content, start, stop, encoding))
    return CutFacts(STORED, stream_bound(content.size))


def digest_spans(content: Content, spans: Sequence[Span]) -> tuple[Digest, tuple[int, ...]]:
    """Return the content's digest, and the CRC-32 of each span."""
    hasher, found = Hasher(), []
    for span in spans:
        crc32 = 0
        for start, stop in span.ranges(content, BLOCK):
            with content.open(start, stop) as buffers:
                for buffer in buffers:
                    hasher.update(buffer)
                    crc32 = zlib_ng.crc32(buffer, crc32)
        found.append(crc32)
    return hasher.digest(), tuple(found)
