"""Packed members: whole or in blocks, they are raw deflate streams of the same bytes to zlib."""

from __future__ import annotations

import hashlib
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.distributions.content.content import BytesContent, SequenceContent
from rocwheel.distributions.content.digest import Digest
from rocwheel.distributions.packing.compression import (
    BLOCK,
    STORED,
    deflate_block,
    expected_size,
    is_worthwhile,
    pack_whole,
)
from rocwheel.distributions.packing.cuts import block_ranges
from tests.support.raw_streams import inflate

MIB = 1 << 20
NOISE = random.Random(6).randbytes(MIB)
TEXT = b"".join(b"%d kernels for gfx%x\n" % (number, number * number % 4091) for number in range(60_000))
LEVELS = range(1, 13)

contents = st.one_of(
    st.binary(max_size=200),
    st.builds(lambda start, size: TEXT[start : start + size], st.integers(0, 1000), st.integers(0, 200_000)),
    st.builds(bytes, st.integers(0, 200_000)),
    st.builds(lambda size: NOISE[:size], st.integers(0, 100_000)),
)


def digest_of(data: bytes) -> Digest:
    return Digest(zlib.crc32(data), hashlib.sha256(data).digest(), len(data))


@given(contents, st.sampled_from(LEVELS))
def test_a_member_packed_whole_is_the_same_bytes_to_zlib(data: bytes, level: int) -> None:
    packed = pack_whole(BytesContent(data), level)
    assert packed.digest == digest_of(data)
    assert (bytes(packed.data) if packed.method == STORED else inflate(bytes(packed.data))) == data


@given(st.lists(contents, max_size=4))
def test_a_member_of_several_buffers_is_packed_as_the_joined_one(parts: list[bytes]) -> None:
    several = pack_whole(SequenceContent(tuple(map(BytesContent, parts))), 6)
    assert several == pack_whole(BytesContent(b"".join(parts)), 6)


@pytest.mark.parametrize("data", [b"", b"\x7f", NOISE[:5000]], ids=["nothing", "one byte", "noise"])
def test_what_deflate_would_not_shrink_is_not_deflated(data: bytes) -> None:
    packed = pack_whole(BytesContent(data), 6)
    assert (packed.method, bytes(packed.data)) == (STORED, data)


@given(contents, st.integers(1, 99), st.sampled_from(LEVELS))
def test_blocks_joined_in_order_are_one_stream_of_the_whole(data: bytes, blocks: int, level: int) -> None:
    content = BytesContent(data or b"\0")
    block = -(-content.size // blocks)
    packed = [deflate_block(content, start, stop, level).data for start, stop in block_ranges(content.size, block)]
    assert inflate(b"".join(packed)) == content.data


@pytest.mark.parametrize("difference", [-1, 0, 1], ids=["one less", "full", "one more"])
def test_blocks_of_the_real_size_join_at_the_edge(difference: int) -> None:
    content = BytesContent((TEXT * 8)[: 2 * BLOCK + difference])
    packed = [deflate_block(content, start, stop, 6).data for start, stop in block_ranges(content.size, BLOCK)]
    assert inflate(b"".join(packed)) == content.data


def test_a_block_sees_the_bytes_before_it() -> None:
    """Without the 32 KiB before it, a block of what was there already would not shrink at all."""
    repeated = BytesContent(NOISE[:20_000] * 2)
    assert len(deflate_block(repeated, 20_000, 40_000, 6).data) < 500


def test_a_higher_level_packs_blocks_smaller() -> None:
    content = BytesContent(TEXT)
    sizes = [len(deflate_block(content, 0, content.size, level).data) for level in (1, 6, 12)]
    assert sizes == sorted(set(sizes), reverse=True)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(NOISE * 2, True, id="noise"),
        pytest.param(TEXT, False, id="text"),
        pytest.param(NOISE + bytes(MIB) + NOISE, False, id="zeros in the middle of noise"),
        pytest.param(NOISE * 8 + bytes(24 * MIB) + NOISE * 32, False, id="zeros off the middle of much noise"),
        pytest.param(NOISE[:-1], False, id="noise too small to be worth sampling"),
        pytest.param(zlib.compress(NOISE * 2), True, id="compressed"),
    ],
)
def test_incompressible_members_are_found_by_samples(data: bytes, expected: bool) -> None:
    assert is_worthwhile(len(data), expected_size(BytesContent(data))) is not expected
