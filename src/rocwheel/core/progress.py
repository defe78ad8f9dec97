"""Reports the progress of long work."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Item = TypeVar("Item")


class Progress(Protocol):
    """Receives the steps of long work. Amounts are in bytes unless the label specifies another unit."""

    def begin(self, label: str, total: int) -> None:
        """End the current step, and start a step of ``total`` units."""

    def advance(self, amount: int) -> None:
        """Report that ``amount`` more units of the current step are done."""

    def end(self) -> None:
        """End the current step."""


class Silent:
    """A `Progress` that reports nothing."""

    def begin(self, label: str, total: int) -> None:
        """Ignore the step."""

    def advance(self, amount: int) -> None:
        """Ignore the amount."""

    def end(self) -> None:
        """Do nothing."""


SILENT = Silent()


@contextmanager
def step(progress: Progress, label: str, total: int = 0) -> Iterator[None]:
    """Run the block as a step. By default, its length is unknown. The step also ends if the block raises an error."""
    progress.begin(label, total)
    try:
        yield
    finally:
        progress.end()


def tracked(progress: Progress, label: str, items: Iterable[Item], sizes: Sequence[int]) -> Iterator[Item]:
    """Yield items. Report an item's size in bytes when the next item is requested."""
    with step(progress, label, sum(sizes)):
        for item, size in zip(items, sizes, strict=True):
            yield item
            progress.advance(size)
