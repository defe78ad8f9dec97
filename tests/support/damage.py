"""Damaged files: bytes changed where headers and tables are, or anywhere, and ends cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st

from rocwheel.core.errors import RocwheelError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["damaged", "unless_refused"]

Result = TypeVar("Result")

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


def unless_refused(call: Callable[[], Result], name: str) -> Result | None:
    """Return what a call returns; nothing where it is refused, which has to be by the ``name`` of the input."""
    try:
        return call()
    except RocwheelError as e:
        assert name in str(e)  # noqa: PT017 (either way is right)
        return None
