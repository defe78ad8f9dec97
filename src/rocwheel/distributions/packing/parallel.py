"""Packing of many members by an executor's workers, ahead of the one writer, within a budget of memory."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from rocwheel.distributions.content.content import FileContent
from rocwheel.distributions.content.digest import Digest, Hasher, digest_content
from rocwheel.distributions.packing.compression import (
    DEFLATED,
    STORED,
    WHOLE_LIMIT,
    Packed,
    block_ranges,
    deflate_block,
    is_incompressible,
    pack_whole,
)
from rocwheel.distributions.packing.stream_codec import ENCODER_MEMORY, STREAM_PIECE, compress_piece
from rocwheel.foundation.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor, Future

    from rocwheel.distributions.content.content import Content
    from rocwheel.distributions.packing.stream_codec import StreamFormat

__all__ = ["Packer", "Sink"]

# Two of the largest members that are packed whole, for two workers.
_BUDGET = 2 * WHOLE_LIMIT
_COPY_STEP = 4 << 20


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

    Work in flight is bounded by a budget of bytes, counted at its worst: what a worker copies plus what it puts out.
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
        if self._level == 0 or is_incompressible(content):
            self._add_stored(sink, name, mode, content)
        elif content.size <= self._whole_limit:
            deliver = partial(self._deliver_whole, sink, name, mode, content)
            self._submit(_whole_cost(content), deliver, pack_whole, content, self._level)
        else:
            self._add_in_blocks(sink, name, mode, content)

    def add_encoded(self, sink: Sink, name: str, mode: int, content: Content, encoding: StreamFormat) -> None:
        """Schedule a member that holds the content compressed as a stream of its own, which ZIP then stores."""
        encoder = _EncodedMember(sink, name, mode, content.size)
        self.call(encoder.begin)
        for start in range(0, content.size, STREAM_PIECE):
            stop = min(start + STREAM_PIECE, content.size)
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

    def _add_stored(self, sink: Sink, name: str, mode: int, content: Content) -> None:
        self._submit(0, partial(self._deliver_stored, sink, name, mode, content), digest_content, content)

    def _add_in_blocks(self, sink: Sink, name: str, mode: int, content: Content) -> None:
        # The hash runs over the whole content, so it starts first, and is waited for last.
        digest = self._executor.submit(digest_content, content)
        self.call(partial(sink.begin, name, mode, DEFLATED, content.size))
        for start, stop in block_ranges(content.size):
            deliver = partial(self._deliver_block, sink, stop - start)
            self._submit(2 * (stop - start), deliver, deflate_block, content, start, stop, self._level)
        self._pending.append((digest, 0, sink.end))

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

    def _deliver_whole(self, sink: Sink, name: str, mode: int, content: Content, packed: Packed) -> None:
        if packed.data is None:
            self._deliver_stored(sink, name, mode, content, packed.digest)
            return
        sink.begin(name, mode, DEFLATED, packed.digest.size)
        sink.write(packed.data)
        sink.end(packed.digest)
        self._progress.advance(packed.digest.size)

    def _deliver_block(self, sink: Sink, size: int, data: bytes) -> None:
        sink.write(data)
        self._progress.advance(size)

    def _deliver_piece(self, encoder: _EncodedMember, size: int, data: bytes) -> None:
        encoder.write(data)
        self._progress.advance(size)

    def _deliver_stored(self, sink: Sink, name: str, mode: int, content: Content, digest: Digest) -> None:
        sink.begin(name, mode, STORED, digest.size)
        for start in range(0, digest.size, _COPY_STEP):
            with content.open(start, min(start + _COPY_STEP, digest.size)) as buffers:
                for buffer in buffers:
                    sink.write(buffer)
        sink.end(digest)
        self._progress.advance(digest.size)


class _EncodedMember:
    """Hashes the pieces of a compressed stream on their way to the sink."""

    def __init__(self, sink: Sink, name: str, mode: int, content_size: int) -> None:
        self._sink = sink
        self._name = name
        self._mode = mode
        self._bound = content_size + (content_size >> 4) + _COPY_STEP
        self._hasher = Hasher()

    def begin(self) -> None:
        # The size is known at the end only; what can't compress grows by far less than this bound.
        self._sink.begin(self._name, self._mode, STORED, self._bound)

    def write(self, data: bytes) -> None:
        self._sink.write(data)
        self._hasher.update(data)

    def end(self) -> None:
        self._sink.end(self._hasher.digest())


def _whole_cost(content: Content) -> int:
    """Bytes of memory that packing a content whole may take: its output, and a copy where it isn't one mapped file."""
    return content.size if isinstance(content, FileContent) else 2 * content.size
