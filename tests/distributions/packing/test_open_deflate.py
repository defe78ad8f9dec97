"""Streams of libdeflate that go on: joined, they inflate to their data by the standard library and by libdeflate."""

from __future__ import annotations

import random
import sys
import zlib
from pathlib import Path

import deflate
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.distributions.packing.open_deflate import open_deflate
from tests.support.raw_streams import inflate

TEXT = b"".join(b"line %d of a text, %d in all\n" % (number, number * number) for number in range(9000))
EMPTY_FINAL_BLOCK = b"\x03\x00"


def opened(data: bytes, level: int = 6) -> bytes:
    """Return the stream of ``data``, which has to be one."""
    stream = open_deflate(memoryview(data), level)
    assert stream is not None
    return stream


@pytest.mark.parametrize("level", [1, 4, 6, 9, 12])
def test_streams_joined_are_one_stream(level: int) -> None:
    parts = [TEXT, TEXT[:100_000], TEXT[1:]]
    packed = b"".join(opened(part, level) for part in parts) + EMPTY_FINAL_BLOCK
    assert inflate(packed) == b"".join(parts)
    assert deflate.deflate_decompress(packed, sum(map(len, parts))) == b"".join(parts)


def test_the_flush_is_right_wherever_in_a_byte_the_last_block_ends() -> None:
    parts = [TEXT[: 50_000 + more] for more in range(40)]
    sizes = [len(opened(part)) - len(deflate.deflate_compress(part, 6)) for part in parts]
    assert inflate(b"".join(map(opened, parts)) + EMPTY_FINAL_BLOCK) == b"".join(parts)
    # Four bytes where the header of the empty block fits into the last byte, else five.
    assert set(sizes) == {4, 5}


@given(
    st.lists(st.tuples(st.integers(0, 2**31), st.integers(1, 256), st.integers(1, 40_000)), min_size=1, max_size=4),
    st.sampled_from([1, 6, 9]),
)
def test_what_is_opened_inflates_to_its_data(runs: list[tuple[int, int, int]], level: int) -> None:
    data = b"".join(bytes(random.Random(seed).choices(range(symbols), k=size)) for seed, symbols, size in runs)
    stream = open_deflate(memoryview(data), level)
    assert stream is None or inflate(stream + EMPTY_FINAL_BLOCK) == data


def test_a_library_takes_less_than_by_zlib() -> None:
    data = Path(sys.executable).resolve().read_bytes()[: 8 << 20]
    assert len(opened(data)) < len(zlib.compress(data, 6))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"a few bytes", id="a few bytes, which the fixed codes pack"),
        pytest.param(bytes(1 << 20), id="zeros, which any code may give"),
        pytest.param(random.Random(1).randbytes(1 << 16), id="noise, which is stored"),
    ],
)
def test_what_proves_no_final_block_is_left_to_others(data: bytes) -> None:
    assert open_deflate(memoryview(data), 6) is None
