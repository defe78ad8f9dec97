"""A small file may not unpack to very much."""

from __future__ import annotations

import io

import pytest

from rocwheel.foundation.compression.expansion import BoundedStream, ExpansionError, most_unpacked


@pytest.mark.parametrize(
    ("packed", "unpacked"), [(0, 1 << 30), (5_368_709, 1 << 30), (5_368_710, 1_073_742_000), (1 << 30, 200 << 30)]
)
def test_a_gibibyte_or_two_hundred_times_the_size_may_be_unpacked(packed: int, unpacked: int) -> None:
    assert most_unpacked(packed) == unpacked


def test_a_stream_gives_what_it_may() -> None:
    stream = BoundedStream(io.BytesIO(b"abcdef"), 6)
    assert (stream.read(4), stream.read(), stream.read(1)) == (b"abcd", b"ef", b"")


def test_a_stream_that_gives_more_ends_with_an_error() -> None:
    stream = BoundedStream(io.BytesIO(b"abcdef"), 5)
    assert stream.read(4) == b"abcd"
    with pytest.raises(ExpansionError, match=r"^unpacks to more than 5 bytes$"):
        stream.read(2)
