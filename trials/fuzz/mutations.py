"""The same changes of inputs each time, for a test that runs without a fuzzer."""

from __future__ import annotations

import random
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["mutate"]

_EXTREMES = (
    b"\0",
    b"\xff",
    b"\0" * 8,
    b"\xff" * 4,
    b"\xff" * 8,
    b"\x7f" * 4,
    b"\1\0\0\0",
    b"\n",
    b'"',
    b"-1",
    b"[" * 9,
)


def mutate(name: str, seeds: Sequence[bytes], tokens: Sequence[bytes], number: int) -> Iterator[bytes]:
    """Yield a number of changed seeds; the same ones for the same name, seeds and tokens."""
    choose = random.Random(zlib.crc32(name.encode()))  # noqa: S311 (the same each time)
    for _ in range(number):
        data = bytearray(choose.choice(seeds))
        for _ in range(choose.randint(1, 4)):
            _change(data, choose, (*_EXTREMES, *tokens))
        yield bytes(data)


def _change(data: bytearray, choose: random.Random, words: Sequence[bytes]) -> None:
    place = choose.randint(0, len(data))
    kind = choose.randrange(6)
    word = choose.choice(words)
    if kind == 0:
        data[place : place + len(word)] = word
    elif kind == 1:
        data[place:place] = word
    elif kind == 2:
        del data[place : place + choose.randint(1, 16)]
    elif kind == 3 and data:
        data[place - 1] ^= 1 << choose.randrange(8)
    elif kind == 4:
        data[place:place] = data[place : place + choose.randint(1, 64)]
    else:
        del data[max(place, len(data) // 2) :]
