"""Damaged files: bytes changed where headers and tables are, or anywhere, and ends cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["damaged"]

_EXTREMES = [b"\0" * 8, b"\xff" * 4, b"\xff" * 8, b"\x7f" * 8, b"\1\0\0\0\0\0\0\0", b"\0\x10\0\0\0\0\0\0"]


@st.composite
def damaged(draw: st.DrawFn, contents: Sequence[bytes]) -> bytes:
    """Draw one of ``contents`` with up to four changes; heads and ends, where tables are, are changed more often."""
    data = bytearray(draw(st.sampled_from(contents)))
    last = len(data) - 1
    places = st.integers(0, min(800, last)) | st.integers(0, last) | st.integers(max(last - 3000, 0), last)
    aligned = places.map(lambda place: place - place % 8)
    for place in draw(st.lists(places | aligned, max_size=4)):
        new = draw(st.sampled_from(_EXTREMES) | st.binary(min_size=1, max_size=8))
        data[place : place + len(new)] = new
    return bytes(data[: draw(st.just(len(data)) | st.integers(0, len(data)))])
