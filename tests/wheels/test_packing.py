"""Tests of `rocwheel.wheels.packing`."""

from __future__ import annotations

import io
import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rocwheel.wheels.content import BytesContent, TarFile, digest_content, tar_content
from rocwheel.wheels.packing import Packer, Span, budget_for, digest_spans, encode_span, level_for, pack_span

if TYPE_CHECKING:
    from rocwheel.wheels.content import Content, Digest
    from rocwheel.wheels.member_compression import StreamFormat


MIB = 1 << 20
SPANS = (Span(0, 8 * MIB), Span(8 * MIB))


class Member:
    """A sink for one member."""

    def __init__(self) -> None:
        self.data = io.BytesIO()
        self.begun: tuple[int, int] = (-1, -1)
        self.digest: Digest | None = None

    def begin(self, name: str, mode: int, method: int, size: int) -> None:  # noqa: ARG002 (the sink's)
        """Note how it is packed."""
        self.begun = method, size

    def write(self, data: bytes | bytearray | memoryview, sha256: bytes = b"") -> None:  # noqa: ARG002 (the sink's)
        """Keep the bytes."""
        self.data.write(data)

    def end(self, digest: Digest) -> None:
        """Note the digest."""
        self.digest = digest


def content(kind: str) -> Content:
    source = random.Random(7)
    if kind == "random":
        return BytesContent(source.randbytes(34 * MIB))
    data = b"".join(b"%d " % source.randrange(1 << 20) for _ in range(1 << 20)) * 3
    if kind == "text":
        return BytesContent(data[: 18 * MIB + 5])
    if kind == "zeros":
        return tar_content([TarFile(f"file-{n}", 0o644, BytesContent(bytes(999_000))) for n in range(40)], mtime=0)
    parts = [TarFile(f"file-{n}", 0o644, BytesContent(data[n * 9999 : n * 9999 + 40_000])) for n in range(500)]
    return tar_content(parts, mtime=0)


@pytest.mark.parametrize("kind", ["text", "random", "tar"])
@pytest.mark.parametrize("level", [1, 0])
def test_packed_spans_equal_the_bytes_of_the_whole(kind: str, level: int) -> None:
    whole, member, parts = content(kind), Member(), io.BytesIO()
    with ThreadPoolExecutor(1) as executor:
        packer = Packer(executor, level, whole_limit=MIB)
        packer.add(member, "a", 0o644, whole)
        packer.drain()
    facts = [pack_span(whole, span, level_for(whole, level), parts.write) for span in SPANS]
    if level or whole.size > 32 * MIB:
        assert parts.getvalue() == member.data.getvalue()
    assert {(one.method, one.bound) for one in facts} == {member.begun}
    assert digest_spans(whole, SPANS) == (digest_content(whole), tuple(one.crc32 for one in facts))


@pytest.mark.parametrize("encoding", ["xz", "zst"])
def test_compressed_spans_of_a_stream_equal_the_bytes_of_the_whole(encoding: StreamFormat) -> None:
    whole, member, parts = content("zeros"), Member(), io.BytesIO()
    with ThreadPoolExecutor(1) as executor:
        packer = Packer(executor, 6)
        packer.add_encoded(member, "a", 0o644, whole, encoding)
        packer.drain()
    spans = (Span(0, 16 * MIB), Span(16 * MIB))
    facts = [encode_span(whole, span, encoding, parts.write) for span in spans]
    assert parts.getvalue() == member.data.getvalue()
    assert {(one.method, one.bound) for one in facts} == {member.begun}


def test_a_span_past_the_end_is_empty() -> None:
    parts = io.BytesIO()
    assert pack_span(BytesContent(b"abc"), Span(4 * MIB), 0, parts.write).crc32 == 0
    assert parts.getvalue() == b""


def test_the_budget_grows_with_the_workers_up_to_that_of_a_build() -> None:
    assert [budget_for(workers) >> 20 for workers in (1, 2, 8, 64)] == [96, 128, 320, 368]
