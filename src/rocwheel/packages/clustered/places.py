"""Where a cluster builds to: a folder that all machines share, or a store."""

from __future__ import annotations

import tempfile
import uuid
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rocwheel.foundation.errors import write_error
from rocwheel.foundation.files.destination import check_destination
from rocwheel.foundation.files.scratch import scratch_folder
from rocwheel.packages.building.build import BuiltDistribution, write_planned_sdist
from rocwheel.packages.building.leftovers import find_leftovers, remove_unfinished
from rocwheel.packages.clustered.exchange import Exchange
from rocwheel.stores.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from rocwheel.distributions.formats.source_date import SourceDate
    from rocwheel.packages.plan import Plan, PlanWarning

__all__ = ["EXCHANGES", "Place", "SharedFolder", "SharedStore"]

EXCHANGES = ".rocwheel-exchange"
"""The folder of a store that holds the exchanges of builds."""


class Place(Protocol):
    """A destination."""

    @property
    def is_store(self) -> bool:
        """Whether it is no folder: inputs are not taken to be shared then, either."""

    @property
    def dist(self) -> str:
        """The path or URL of what distributions go to."""

    def prepare(self) -> tuple[str, ...]:
        """Make it ready, and return the paths of what killed builds have left and is removed now."""

    def exchange(self) -> AbstractContextManager[Exchange]:
        """Yield an exchange, which goes with the block."""

    def write_sdists(self, plan: Plan, source_date: SourceDate) -> tuple[BuiltDistribution, ...]:
        """Write the source distributions of a plan, which are small, from this process."""

    def find_leftovers(self, built: Sequence[str]) -> tuple[PlanWarning, ...]:
        """Return a warning about distributions there that are not among the built ones, if any."""


class SharedFolder:
    """A folder that every machine has under the same path."""

    is_store = False

    def __init__(self, dest_dir: Path) -> None:
        """Raise `InputError` if something at or above the folder is not a folder."""
        self._dist_dir = dest_dir / "dist"
        check_destination(self._dist_dir)

    @property
    def dist(self) -> str:
        """The path of the folder that distributions go to, which doesn't depend on a process."""
        return str(self._dist_dir.resolve())

    def prepare(self) -> tuple[str, ...]:
        """Make the folder, and return the paths of what killed builds have left and is removed now."""
        try:
            self._dist_dir.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise write_error(self._dist_dir, e) from e
        return tuple(str(path) for path in remove_unfinished(self._dist_dir))

    @contextmanager
    def exchange(self) -> Iterator[Exchange]:
        """Yield a hidden folder; what a killed build leaves of it, the next one removes."""
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(scratch_folder(Path(self.dist, "exchange")))
            except OSError as e:
                raise write_error(self._dist_dir, e) from e
            yield Exchange(str(folder))

    def write_sdists(self, plan: Plan, source_date: SourceDate) -> tuple[BuiltDistribution, ...]:
        """Write the source distributions of a plan."""
        written = [write_planned_sdist(sdist, Path(self.dist), source_date) for sdist in plan.sdists]
        return tuple(BuiltDistribution(str(path), path.stat().st_size) for path in written)

    def find_leftovers(self, built: Sequence[str]) -> tuple[PlanWarning, ...]:
        """Return a warning about other distributions in the folder, if any."""
        return find_leftovers(Path(self.dist), built)


class SharedStore:
    """A store that every machine reaches; what is in it stays unless a build writes a file of the same name."""

    is_store = True

    def __init__(self, url: str) -> None:
        self._url = url
        self.dist = f"{url}/dist"

    def prepare(self) -> tuple[str, ...]:
        """Do nothing: a store makes its folders."""
        return ()

    @contextmanager
    def exchange(self) -> Iterator[Exchange]:
        """Yield a part of the store; what a killed build leaves of it is for a rule of the bucket to remove."""
        exchange = Exchange(f"{self._url}/{EXCHANGES}/{uuid.uuid4().hex}")
        try:
            yield exchange
        finally:
            with suppress(StoreError):  # which must not hide why the build failed
                store = exchange.store()
                for stored in store.list():
                    store.delete(stored.name)

    def write_sdists(self, plan: Plan, source_date: SourceDate) -> tuple[BuiltDistribution, ...]:
        """Write the source distributions of a plan."""
        with tempfile.TemporaryDirectory(prefix="rocwheel-") as folder:
            written = [write_planned_sdist(sdist, Path(folder), source_date) for sdist in plan.sdists]
            return tuple(self._put(path, path.relative_to(folder).as_posix()) for path in written)

    def _put(self, path: Path, name: str) -> BuiltDistribution:
        store = Exchange(self.dist).store()
        store.put(name, path, create=False)
        return BuiltDistribution(store.place(name), path.stat().st_size)

    def find_leftovers(self, built: Sequence[str]) -> tuple[PlanWarning, ...]:
        """Return nothing: what a bucket holds beside is for those who publish from it."""
        del built
        return ()
