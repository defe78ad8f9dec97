"""Connecting to a cluster whose workers would make the same bytes as this process."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from rocwheel.cluster.versions import are_all_here, check_workers, worker_facts
from rocwheel.core.errors import WorkError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.cluster.seam import Cluster

__all__ = ["Connection", "connected"]

_DASK = ("dask", "distributed", "tornado")


class Connection:
    """A cluster that was checked."""

    def __init__(self, cluster: Cluster, *, is_here: bool) -> None:
        self.cluster = cluster
        self.is_here = is_here
        """Whether all workers run on this machine."""


@contextmanager
def connected(scheduler: str) -> Iterator[Connection]:
    """Yield the cluster of a Dask scheduler: its address, or the file that it wrote it to.

    What is under way at the end of the block is cancelled. Raises `InputError` when it can't be reached or has no
    workers, `VersionError` or `ProblemsError` for workers that differ, and `WorkError` without Dask.
    """
    try:
        module = import_module("rocwheel.cluster.dask_cluster")
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] not in _DASK:
            raise
        found = f"needs the library distributed, which is not installed ({e})"
        raise WorkError(scheduler, found, remedy="Install it: pip install 'rocwheel[dask]'.") from e
    with module.opened(scheduler) as cluster:
        answers = cluster.ask(worker_facts)
        check_workers(answers)
        yield Connection(cluster, is_here=are_all_here(answers))
