"""Reading of files by the workers of a cluster, where a scheduler is given."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from rocwheel.core.workers import Readers

__all__ = ["reading", "shared_paths"]


def shared_paths(scheduler: str | None, paths: Iterable[Path]) -> list[Path]:
    """Return paths as they lead to the same files on other machines, as they are where no scheduler is given.

    Workers stand in folders of their own, so that a relative path would lead elsewhere.
    """
    return [path if scheduler is None else path.absolute() for path in paths]


@contextmanager
def reading(scheduler: str | None, warn: Callable[[str], object]) -> Iterator[Readers | None]:
    """Yield the workers of a scheduler as readers of files, none where no scheduler is given.

    ``warn`` gets what the user should know. Raises as `connected` does.
    """
    if scheduler is None:
        yield None
        return
    # Only now, as it takes longer to load than many a folder to read.
    with import_module("rocwheel.cluster.connect").connected(scheduler) as connection:
        if connection.is_here:
            warn("All workers run on this machine: reading would be faster without --scheduler.")
        yield import_module("rocwheel.cluster.readers").ClusterReaders(connection.cluster)
