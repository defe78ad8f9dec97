"""How long work reports its progress."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Item = TypeVar("Item")


class Progress(Protocol):
    """Receives the steps of long work; amounts are bytes unless the label says otherwise."""

    def begin(self, label: str, total: int) -> None:
        """Start a step of ``total`` units, ending the one before."""

    def advance(self, amount: int) -> None:
        """Report that ``amount`` more units of the current step are done."""

    def end(self) -> None:
        """End the current step."""


class Silent:
    """A `Progress` that says nothing."""

    def begin(self, label: str, total: int) -> None:
        """Ignore the step."""

    def advance(self, amount: int) -> None:
        """Ignore the amount."""

    def end(self) -> None:
        """Do nothing."""


SILENT = Silent()


@contextmanager
def step(progress: Progress, label: str, total: int = 0) -> Iterator[None]:
    """Make the block a step, of an unknown length by default, which is over however the block ends."""
    progress.begin(label, total)
    try:
        yield
    finally:
        progress.end()


def tracked(progress: Progress, label: str, items: Iterable[Item], sizes: Sequence[int]) -> Iterator[Item]:
    """Yield items, and report each with its size in bytes as done when the next one is asked for."""
    with step(progress, label, sum(sizes)):
        for item, size in zip(items, sizes, strict=True):
            yield item
            progress.advance(size)
