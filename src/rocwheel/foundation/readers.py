"""The interface to what reads the many files of a job: threads of this process by default, or workers of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["Readers", "Told"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class Told(NamedTuple):
    """What readers are told of an item before it is read."""

    name: str
    """For messages."""
    size: int
    """About how many bytes are read."""
    path: str
    """The file that they are read from."""


class Readers(Protocol):
    """Workers that may be on other machines; these have the files under the same paths."""

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item], tell: Callable[[Item], Told]
    ) -> Iterator[Result]:
        """Yield what ``function`` returns for each item, in their order; both can be copied by pickle.

        Items bear no stamps but those that hold on any machine. Raises what ``function`` raises, and `WorkError` for a
        worker that can't read one of the files.
        """
