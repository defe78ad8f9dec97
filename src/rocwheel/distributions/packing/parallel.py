"""Packing of many members by an executor's workers, ahead of the one writer, within a budget of memory."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from rocwheel.distributions.content.digest import Digest, Hasher
from rocwheel.distributions.packing.compression import (
    BLOCK,
    DEFLATED,
    STORED,
    WHOLE_LIMIT,
    Packed,
    PackedBlock,
    deflate_block,
    expected_size,
    is_worthwhile,
    pack_whole,
    store_block,
    store_whole,
)
from rocwheel.distributions.packing.cuts import piece_ranges
from rocwheel.distributions.packing.deflate_part import WINDOW
from rocwheel.distributions.packing.stream_codec import ENCODER_MEMORY, STREAM_PIECE, compress_piece, stream_bound
from rocwheel.foundation.files.file_stamp import ChangedFileError
from rocwheel.foundation.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor, Future

    from rocwheel.distributions.content.content import Content
    from rocwheel.distributions.packing.stream_codec import StreamFormat

__all__ = ["Packer", "Sink"]

# Two of the largest members that are packed whole, for two workers, with what they become.
_BUDGET = 368 << 20
_STORED_WHOLE = 32 << 20


class Sink(Protocol):
    """Receives packed members one after the other, on the thread that runs the `Packer`."""

    def begin(self, name: str, mode: int, method: int, size: int) -> None:
        """Start a member of at most ``size`` unpacked bytes, packed by ZIP ``method``."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append packed bytes to the member."""

    def end(self, digest: Digest) -> None:
        """Complete the member; ``digest`` is that of the unpacked bytes."""


class Packer:
    """Schedules packing on an executor and delivers to sinks in the order in which members were added.

    Work in flight is bounded by a budget of bytes: what a worker reads plus what it puts out, by samples.
    """

    def __init__(
        self,
        executor: Executor,
        level: int,
        *,
        progress: Progress = SILENT,
        budget: int = _BUDGET,
        whole_limit: int = WHOLE_LIMIT,
    ) -> None:
        self._executor = executor
        self._level = level
        self._progress = progress
        self._budget = budget
        self._whole_limit = whole_limit
        self._pending: deque[tuple[Future[Any] | None, int, Callable[[Any], object]]] = deque()
        self._in_flight = 0

    def add(self, sink: Sink, name: str, mode: int, content: Content) -> None:
        """Schedule a member; this blocks while the budget is used up."""
        size = content.size
        expected = expected_size(content) if self._level else size
        if self._level == 0 or not is_worthwhile(size, expected):
            self.add_stored(sink, name, mode, content)
        elif size <= self._whole_limit:
            deliver = partial(self._deliver_whole, sink, name, mode)
            self._submit(size + min(size, expected * 5 // 4), deliver, pack_whole, content, self._level)
        else:
            member = _BlockMember(sink, name, mode, DEFLATED, size)
            self._add_in_blocks(member, content, deflate_block, self._level)

    def add_encoded(self, sink: Sink, name: str, mode: int, content: Content, encoding: StreamFormat) -> None:
        """Schedule a member that holds the content compressed as a stream of its own, which ZIP then stores."""
        encoder = _EncodedMember(sink, name, mode, content.size)
        self.call(encoder.begin)
        for start, stop in piece_ranges(content, STREAM_PIECE):
            deliver = partial(self._deliver_piece, encoder, stop - start)
            cost = 2 * (stop - start) + ENCODER_MEMORY
            self._submit(cost, deliver, compress_piece, content, start, stop, encoding)
        self.call(encoder.end)

    def call(self, function: Callable[[], object]) -> None:
        """Schedule a call for when everything added so far has been delivered."""
        self._pending.append((None, 0, lambda _: function()))

    def drain(self) -> None:
        """Deliver everything that is still under way."""
        while self._pending:
            self._deliver_next()

    def cancel(self) -> None:
        """Drop everything that has not been delivered."""
        for future, _, _ in self._pending:
            if future is not None:
                future.cancel()
        self._pending.clear()

    def add_stored(self, sink: Sink, name: str, mode: int, content: Content) -> None:
        """Schedule a member that stays as it is, as what is compressed already does."""
        if content.size <= _STORED_WHOLE:
            self._submit(content.size, partial(self._deliver_whole, sink, name, mode), store_whole, content)
        else:
            self._add_in_blocks(_BlockMember(sink, name, mode, STORED, content.size), content, store_block)

    def _add_in_blocks(
        self, member: _BlockMember, content: Content, pack: Callable[..., PackedBlock], *options: int
    ) -> None:
        self.call(member.begin)
        for start, stop in piece_ranges(content, BLOCK):
            deliver = partial(self._deliver_block, member)
            self._submit(2 * (stop - start), deliver, pack, content, start, stop, *options)
        self.call(member.end)

    def _submit(self, cost: int, deliver: Callable[[Any], None], task: Callable[..., Any], *args: object) -> None:
        while self._pending and self._in_flight + cost > self._budget:
            self._deliver_next()
        self._in_flight += cost
        self._pending.append((self._executor.submit(task, *args), cost, deliver))
        while self._pending and (self._pending[0][0] is None or self._pending[0][0].done()):
            self._deliver_next()

    def _deliver_next(self) -> None:
        future, cost, deliver = self._pending.popleft()
        deliver(None if future is None else future.result())
        self._in_flight -= cost

    def _deliver_whole(self, sink: Sink, name: str, mode: int, packed: Packed) -> None:
        sink.begin(name, mode, packed.method, packed.digest.size)
        sink.write(packed.data)
        sink.end(packed.digest)
        self._progress.advance(packed.digest.size)

    def _deliver_block(self, member: _BlockMember, block: PackedBlock) -> None:
        member.write(block)
        self._progress.advance(len(block.original))

    def _deliver_piece(self, encoder: _EncodedMember, size: int, data: bytes) -> None:
        encoder.write(data)
        self._progress.advance(size)


class _BlockMember:
    """Hashes the blocks of a member on their way to the sink, so that the digest is that of the bytes packed."""

    def __init__(self, sink: Sink, name: str, mode: int, method: int, size: int) -> None:
        self._sink = sink
        self._name = name
        self._begin = partial(sink.begin, name, mode, method, size)
        self._hasher = Hasher()
        self._tail = b""

    def begin(self) -> None:
        self._begin()

    def write(self, block: PackedBlock) -> None:
        if block.history != self._tail[len(self._tail) - len(block.history) :]:
            raise ChangedFileError(self._name, "was written to while it was being packed")
        self._hasher.update(block.original)
        self._tail = (self._tail + block.original[-WINDOW:])[-WINDOW:]
        self._sink.write(block.data)

    def end(self) -> None:
        self._sink.end(self._hasher.digest())


class _EncodedMember:
    """Hashes the pieces of a compressed stream on their way to the sink."""

    def __init__(self, sink: Sink, name: str, mode: int, content_size: int) -> None:
        self._sink = sink
        self._name = name
        self._mode = mode
        self._bound = stream_bound(content_size)
        self._hasher = Hasher()

    def begin(self) -> None:
        # The size is known at the end only.
        self._sink.begin(self._name, self._mode, STORED, self._bound)

    def write(self, data: bytes) -> None:
        self._sink.write(data)
        self._hasher.update(data)

    def end(self) -> None:
        self._sink.end(self._hasher.digest())
