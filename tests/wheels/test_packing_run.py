"""Tests of `rocwheel.wheels.packing`."""

from __future__ import annotations

import lzma
import multiprocessing
import random
import sys
import zlib
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.core.reading import ChangedFileError, FileRange
from rocwheel.wheels.content import BytesContent, FileContent, SequenceContent
from rocwheel.wheels.member_compression import BLOCK, DEFLATED, STORED
from rocwheel.wheels.packing import Packer
from tests.wheels.doubles import LazyExecutor, ListSink, ZeroContent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.wheels.content import Content


pytestmark = pytest.mark.slow

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


MIB = 1 << 20
NOISE = random.Random(6).randbytes(3 * MIB)
TEXT = b"".join(b"%d kernels for gfx%x\n" % (number, number * number % 4091) for number in range(60_000))

MEMBERS: dict[str, Content] = {
    "empty": BytesContent(b""),
    "text": BytesContent(TEXT),
    "noise": BytesContent(NOISE),
    "small noise": BytesContent(NOISE[:3000]),
    "parts": SequenceContent((BytesContent(b"head"), BytesContent(TEXT), BytesContent(NOISE[:100]))),
    "zeros": ZeroContent(9 * MIB),
}


def unpack(method: int, data: bytes) -> bytes:
    return zlib.decompress(data, -15) if method == DEFLATED else data


def pack(executor: Executor, *, level: int = 6, whole_limit: int = 2 * MIB, budget: int = 64 * MIB) -> ListSink:
    sink = ListSink()
    packer = Packer(executor, level, whole_limit=whole_limit, budget=budget)
    for number, (name, content) in enumerate(MEMBERS.items()):
        packer.add(sink, name, 0o755 if number % 2 else 0o644, content)
    packer.add_encoded(sink, "tar.xz", 0o644, MEMBERS["text"], "xz")
    packer.add_encoded(sink, "tar.zst", 0o644, MEMBERS["zeros"], "zst")
    packer.drain()
    return sink


def read(content: Content) -> bytes:
    with content.open(0, content.size) as buffers:
        return b"".join(buffers)


def test_members_arrive_in_order_with_their_modes_and_bytes() -> None:
    sink = pack(LazyExecutor())
    assert [(name, mode) for name, mode, *_ in sink.members] == [
        ("empty", 0o644), ("text", 0o755), ("noise", 0o644), ("small noise", 0o755), ("parts", 0o644),
        ("zeros", 0o755), ("tar.xz", 0o644), ("tar.zst", 0o644),
    ]  # fmt: skip
    assert {name: unpack(method, data) for name, _, method, _, data, _ in sink.members[:6]} == {
        name: read(content) for name, content in MEMBERS.items()
    }


def test_a_digest_is_computed_over_the_unpacked_bytes() -> None:
    for _, _, method, bound, data, digest in pack(LazyExecutor()).members:
        plain = unpack(method, data)
        assert (digest.crc32, digest.size) == (zlib.crc32(plain), len(plain))
        assert digest.size <= bound


def test_methods_depend_on_whether_deflate_saves_space() -> None:
    assert {name: method for name, _, method, *_ in pack(LazyExecutor()).members} == {
        "empty": STORED, "text": DEFLATED, "noise": STORED, "small noise": STORED, "parts": DEFLATED,
        "zeros": DEFLATED, "tar.xz": STORED, "tar.zst": STORED,
    }  # fmt: skip


def test_level_zero_stores_everything_without_trying_deflate() -> None:
    executor = LazyExecutor()
    assert {method for _, _, method, *_ in pack(executor, level=0).members} == {STORED}
    assert set(executor.run) == {"store_whole", "compress_piece"}


def test_encoded_members_contain_one_stream_of_the_content() -> None:
    members = {name: data for name, *_, data, _ in pack(LazyExecutor()).members}
    assert lzma.decompress(members["tar.xz"]) == TEXT
    assert zstd.decompress(members["tar.zst"]) == bytes(9 * MIB)


def test_the_bytes_do_not_depend_on_the_workers_or_the_budget() -> None:
    alone = pack(LazyExecutor()).members
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(4) as four:
        assert pack(one).members == alone
        assert pack(four).members == alone
        assert pack(four, budget=0).members == alone


def test_workers_may_be_processes() -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        assert pack(processes).members == pack(LazyExecutor()).members


class _Counted:
    """A content that a test counts by its size."""

    def __init__(self, size: int) -> None:
        self.size = size

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        yield [memoryview(bytes(stop - start))]


class _WatchedExecutor(LazyExecutor):
    """Keeps the most bytes of content that were submitted and not yet delivered."""

    def __init__(self, sink: ListSink) -> None:
        super().__init__()
        self._sink = sink
        self._sizes: list[int] = []
        self.most = 0

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        self._sizes.append(args[0].size)
        self.most = max(self.most, sum(self._sizes[len(self._sink.members) :]))
        return super().submit(fn, *args, **kwargs)


@given(st.lists(st.integers(0, 2000), max_size=30), st.integers(0, 5000))
def test_work_in_flight_exceeds_the_budget_by_at_most_one_task(sizes: list[int], budget: int) -> None:
    sink = ListSink()
    executor = _WatchedExecutor(sink)
    packer = Packer(executor, 6, budget=budget)
    for size in sizes:
        packer.add(sink, "member", 0o644, _Counted(size))
    packer.drain()
    assert len(sink.members) == len(sizes)
    # What is counted for a member that is no plain file is twice its size.
    assert 2 * executor.most <= max(budget, 2 * max(sizes, default=0))


def test_a_member_in_blocks_is_delivered_while_being_packed() -> None:
    executor = LazyExecutor()
    packer = Packer(executor, 1, whole_limit=0, budget=3 * 2 * BLOCK)
    packer.add(ListSink(), "large", 0o644, ZeroContent(10 * BLOCK))
    assert executor.submitted == ["deflate_block"] * 10
    assert executor.run == ["deflate_block"] * 7


def test_calls_run_after_everything_before_them_is_delivered() -> None:
    sink = ListSink()
    seen: list[int] = []
    packer = Packer(LazyExecutor(), 6)
    packer.call(lambda: seen.append(len(sink.members)))
    packer.add(sink, "a", 0o644, BytesContent(b"a"))
    packer.call(lambda: seen.append(len(sink.members)))
    packer.add(sink, "b", 0o644, BytesContent(b"b"))
    packer.drain()
    assert seen == [0, 1]


def test_cancelling_drops_undelivered_work() -> None:
    sink, executor = ListSink(), LazyExecutor()
    packer = Packer(executor, 6)
    packer.add(sink, "a", 0o644, BytesContent(b"a"))
    packer.add(sink, "b", 0o644, BytesContent(b"b"))
    packer.cancel()
    packer.drain()
    assert (sink.members, executor.run, executor.cancelled) == ([], [], ["pack_whole"] * 2)


class _CountingProgress:
    def __init__(self) -> None:
        self.done = 0

    def begin(self, label: str, total: int) -> None:
        """Ignore the step."""

    def advance(self, amount: int) -> None:
        """Add up."""
        self.done += amount

    def end(self) -> None:
        """Do nothing."""


def test_progress_counts_every_byte_once() -> None:
    progress, sink = _CountingProgress(), ListSink()
    packer = Packer(LazyExecutor(), 6, progress=progress, whole_limit=2 * MIB)
    for name, content in MEMBERS.items():
        packer.add(sink, name, 0o644, content)
    packer.add_encoded(sink, "tar.xz", 0o644, MEMBERS["text"], "xz")
    packer.drain()
    assert progress.done == sum(content.size for content in MEMBERS.values()) + len(TEXT)


@pytest.mark.parametrize("whole_limit", [1 << 30, 0], ids=["whole", "in blocks"])
def test_the_error_for_a_source_that_shrank_names_the_source(tmp_path: Path, whole_limit: int) -> None:
    path = tmp_path / "libamdhip64.so.5"
    path.write_bytes(TEXT)
    content = FileContent(FileRange.whole(path))
    with ThreadPoolExecutor(2) as executor:
        packer = Packer(executor, 6, whole_limit=whole_limit)
        path.write_bytes(TEXT[:-1])
        with pytest.raises(
            InputError,
            match=rf"libamdhip64\.so\.5: changed from {len(TEXT)} to {len(TEXT) - 1} bytes",
        ):
            _add_and_drain(packer, content)


def _add_and_drain(packer: Packer, content: Content) -> None:
    packer.add(ListSink(), "lib", 0o644, content)
    packer.drain()


def test_a_block_whose_history_differs_from_the_previous_block_is_refused() -> None:
    """Its bytes were written to between the two readings, too quickly for the times of the file to tell."""
    packer = Packer(LazyExecutor(), 6, whole_limit=0)
    with pytest.raises(ChangedFileError, match="lib: changed while it was being packed"):
        _add_and_drain(packer, _Restless(2 * BLOCK))


def test_pieces_shorter_than_the_history_form_one_stream() -> None:
    parts = tuple(BytesContent(b"%06d" % number * 1000) for number in range(1000))
    content = SequenceContent(parts, tuple(range(6000, 6_000_000, 6000)))
    sink, packer = ListSink(), Packer(LazyExecutor(), 6, whole_limit=0)
    packer.add(sink, "tar", 0o644, content)
    packer.drain()
    ((_, _, method, _, data, _),) = sink.members
    assert unpack(method, data) == read(content)


class _Restless(ZeroContent):
    """Bytes that are others each time they are read."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._reads = 0

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        self._reads += 1
        yield [memoryview(bytes([self._reads]) * (stop - start))]
