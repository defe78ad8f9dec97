"""Long inputs of one repeated word: what takes time or memory that grows faster than the input shows there at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trials.fuzz.attempt import Fault, attempt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trials.fuzz.harness import Harness

__all__ = ["LENGTH", "long_inputs", "try_long_inputs"]

LENGTH = 100_000
"""Bytes of the repeated words."""
_WORDS = (
    *(b"a", b"0", b"9", b" ", b"\n", b"\0", b"\xff", b"(", b"[", b"{", b",", b'"', b"'", b"\\", b"-", b".", b":", b"/"),
    *(
        b"%",
        b"$",
        b"<",
        b"&",
        b"=",
        b"../",
        b"a/",
        b"a.",
        b"a-",
        b"a,",
        b"a=",
        b"x;",
        b"a\n",
        b"[a]\n",
        b"a: b\n",
        b"a:\n ",
    ),
    b"a b ",
)


def long_inputs(harness: Harness) -> Iterator[bytes]:
    """Yield each word so many times, alone and behind the first seed; and each token of the format."""
    beginning = next(iter(harness.seeds()))[: harness.largest]
    for word in (*_WORDS, *harness.tokens):
        repeated = word * (LENGTH // len(word))
        yield repeated
        yield beginning + repeated


def try_long_inputs(harness: Harness) -> tuple[Fault, ...]:
    """Return what goes wrong with them, each kind and place once."""
    faults = (attempt(harness, data) for data in long_inputs(harness))
    return tuple({(fault.kind, fault.place): fault for fault in faults if fault}.values())
