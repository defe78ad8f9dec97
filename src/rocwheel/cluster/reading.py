"""Reading of files by the workers of a cluster, where a scheduler is given."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rocwheel.foundation.readers import Readers

__all__ = ["reading"]


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
