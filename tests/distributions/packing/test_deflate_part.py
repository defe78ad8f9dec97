"""Parts of one deflate stream, made apart: zeros deflated once, noise stored; the standard library inflates them."""

from __future__ import annotations

import random

import deflate as library
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.distributions.packing import deflate_part as part
from rocwheel.distributions.packing.deflate_part import deflate_part
from tests.support.raw_streams import inflate

KIB = 1 << 10
PIECE = 256 * KIB
NOISE = random.Random(1).randbytes(PIECE)
TEXT = b"".join(b"line %d of a text\n" % number for number in range(16_000))[:PIECE]
ZEROS = bytes(PIECE)
KINDS = {"zeros": ZEROS, "noise": NOISE, "text": TEXT}


def deflate(data: bytes, start: int = 0, *, level: int = 6, is_last: bool = True) -> bytes:
    """Return the part of ``data`` from ``start`` on."""
    return deflate_part(memoryview(data), start, level, is_last=is_last)


@given(st.lists(st.sampled_from(sorted(KINDS)), max_size=6), st.integers(0, PIECE), st.sampled_from([0, 1, 6, 12]))
def test_a_part_of_any_kinds_of_bytes_inflates_to_them(kinds: list[str], cut: int, level: int) -> None:
    data = b"".join(KINDS[kind] for kind in kinds)
    data = data[: max(len(data) - cut, 0)]
    assert inflate(deflate(data, level=level)) == data


@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4), st.integers(1, 1000))
def test_two_parts_joined_are_one_stream(kinds: list[str], share: int) -> None:
    data = b"".join(KINDS[kind] for kind in kinds)
    cut = len(data) * share // 1000
    assert inflate(deflate(data[:cut], is_last=False) + deflate(data, cut)) == data


@pytest.mark.parametrize(
    ("data", "least", "most"),
    [
        pytest.param(ZEROS * 16, 1, 5 * KIB, id="zeros take next to nothing"),
        pytest.param(NOISE, PIECE, PIECE + 64, id="noise grows by a few bytes"),
        pytest.param(TEXT, 1, PIECE // 4, id="text shrinks"),
        pytest.param(NOISE[: PIECE // 2] + bytes(PIECE // 2), PIECE // 2, PIECE // 2 + KIB, id="half of it zeros"),
    ],
)
def test_what_a_part_takes_depends_on_its_bytes(data: bytes, least: int, most: int) -> None:
    assert least <= len(deflate(data)) <= most


@pytest.mark.parametrize(
    ("data", "samples"),
    [
        pytest.param(TEXT, 1, id="text: one sample is enough"),
        pytest.param(ZEROS, 0, id="zeros: none"),
        pytest.param(NOISE, 4, id="noise: all four"),
        pytest.param(NOISE[: PIECE // 2] + TEXT[: PIECE // 2], 3, id="text behind noise: up to the first of the text"),
    ],
)
def test_few_bytes_are_deflated_to_tell_their_kind(data: bytes, samples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def note(data: memoryview, level: int) -> bytearray:
        sizes.append(len(data))
        return whole(data, level)

    whole = library.deflate_compress
    monkeypatch.setattr(library, "deflate_compress", note)
    inflate(deflate(data))
    assert [size for size in sizes if size < PIECE] == [4 * KIB] * samples


def test_no_final_block_is_searched_for_where_zeros_follow_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a compressed bundle, inside a piece between noise and zeros."""
    searched: list[int] = []
    monkeypatch.setattr(part, "open_deflate", lambda data, _: searched.append(len(data)))
    half = PIECE // 2
    data = NOISE + NOISE[:half] + bytes(half) + ZEROS
    packed = deflate(data)
    assert inflate(packed) == data
    assert searched == []


def test_a_part_refers_to_the_bytes_before_it() -> None:
    """Noise that comes a second time is found in the window, not stored."""
    assert len(deflate(NOISE[:20_000] * 2, 20_000)) < 500


def test_the_same_bytes_always_make_the_same_part() -> None:
    """The zeros of the second call come from a cache."""
    data = TEXT + ZEROS + NOISE
    assert deflate(data) == deflate(data)
