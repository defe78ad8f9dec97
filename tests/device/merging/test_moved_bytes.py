"""Tests of the comparison of sections but for words that may differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.device.merging.moved_bytes import BehindWord, is_same_but_moved


def words(*starts: int) -> BehindWord:
    """Accept the words of four bytes that begin at these offsets."""

    def behind(at: int, start: int) -> int | None:
        return next((word + 4 for word in starts if word <= at < word + 4 and word >= start), None)

    return behind


@given(st.binary(min_size=16, max_size=200), st.sets(st.integers(0, 40), max_size=5), st.integers(0, 49))
def test_only_words_that_may_differ_do(data: bytes, accepted: set[int], other: int) -> None:
    moved = bytearray(data)
    for word in (word for word in accepted if word * 4 + 4 <= len(data)):
        moved[word * 4] ^= 1
        moved[word * 4 + 3] ^= 255
    behind = words(*(word * 4 for word in accepted))
    assert is_same_but_moved(memoryview(data), memoryview(moved), behind)
    if other not in accepted and other * 4 < len(data):
        moved[other * 4] ^= 1
        assert not is_same_but_moved(memoryview(data), memoryview(moved), behind)


def test_a_word_across_two_pieces_is_found() -> None:
    piece = 4 << 20
    data = bytearray(piece + 100)
    moved = bytearray(data)
    moved[piece - 2 : piece + 2] = b"word"
    assert is_same_but_moved(memoryview(data), memoryview(moved), words(piece - 2))
    assert not is_same_but_moved(memoryview(data), memoryview(moved), words(piece - 3))


@pytest.mark.parametrize("at", [0, 3, 7])
def test_a_byte_that_differs_otherwise_is_a_change(at: int) -> None:
    data = bytearray(8)
    data[at] = 1
    assert not is_same_but_moved(memoryview(bytes(8)), memoryview(data), words())


def test_sections_of_two_sizes_differ() -> None:
    assert not is_same_but_moved(memoryview(bytes(8)), memoryview(bytes(9)), words(0, 4, 8))
