"""What indexes offer of each project to the machines of a mirror; the page of a project is read once.

The first index that has a project owns it, as for uv: what a later one lists under this name is not even looked at, or
whoever can write there could replace a package of one's own by a newer version (dependency confusion, :pep:`708`).
"""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.workers import raise_all
from rocwheel.distributions.mirroring.choose_variants import choose_variants
from rocwheel.stores.urls import shown_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rocwheel.distributions.index_reading.source import IndexSource, ProjectListing
    from rocwheel.distributions.index_reading.trust import ListedFile
    from rocwheel.distributions.mirroring.choose import Choice

__all__ = ["Shelf"]


class Shelf:
    """The projects of several indexes. Several threads may use it at once, for different projects."""

    def __init__(self, sources: Sequence[IndexSource], choice: Choice, serves: Callable[[str], bool]) -> None:
        """Note the indexes, of which the first that has a project owns it, and for which machines and GPUs they are."""
        self._sources = sources
        self._choice = choice
        self._serves = serves
        self._read: dict[str, tuple[ProjectListing, ...]] = {}
        self._known: dict[str, tuple[ListedFile, ...]] = {}
        self._ignored: dict[str, list[str]] = {}
        self._problems: list[RocwheelError] = []
        self._lock = threading.Lock()

    def has(self, project: str) -> bool:
        """Return whether an index has a page of a project; raises as `IndexSource.read_project` does."""
        return bool(self._listings(project))

    def offered(self, project: str) -> tuple[ListedFile, ...]:
        """Return the files of a project that the machines can install; what is wrong with its pages `check` raises."""
        if project not in self._known:
            listings = self._listings(project)
            ignored = [name for listing in listings for name in listing.ignored]
            problems = [problem for listing in listings for problem in listing.problems]
            found = _united((file for one in listings for file in self._suiting(one, ignored)), problems)
            with self._lock:
                self._ignored[project] = ignored
                self._problems += problems
                self._known[project] = found
        return self._known[project]

    @property
    def ignored(self) -> tuple[str, ...]:
        """Names of what the pages list and is no distribution, or a wheel variant that is not wanted."""
        return tuple(name for project in sorted(self._ignored) for name in self._ignored[project])

    def check(self, where: str) -> None:
        """Raise what is wrong with the pages that were read, as `raise_all` does."""
        raise_all(where, self._problems)

    def _listings(self, project: str) -> tuple[ProjectListing, ...]:
        """Return what the first index lists that has the project; what all do, if it is to be taken from all."""
        if project not in self._read:
            found = (listing for source in self._sources if (listing := source.read_project(project)))
            is_pooled = project in self._choice.pooled
            self._read[project] = tuple(found if is_pooled else islice(found, 1))
        return self._read[project]

    def _suiting(self, listing: ProjectListing, ignored: list[str]) -> Iterator[ListedFile]:
        files = [file for file in listing.files if self._choice.machines.fits(file)]
        if self._choice.variants:
            yield from choose_variants(listing, files, self._serves)
            return
        ignored += [file.filename for file in files if file.label]
        yield from (file for file in files if not file.label)


def _united(files: Iterable[ListedFile], problems: list[RocwheelError]) -> tuple[ListedFile, ...]:
    """Return each file once, from the first index that has it."""
    found: dict[str, ListedFile] = {}
    for file in files:
        first = found.setdefault(file.filename, file)
        if first.sha256 != file.sha256:
            text = f"is another file at {shown_url(file.url)}"
            problems.append(InputError(shown_url(first.url), text, remedy="Mirror one of the indexes."))
    return tuple(found.values())
