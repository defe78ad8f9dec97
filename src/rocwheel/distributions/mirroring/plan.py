"""What a mirror will hold: the wanted files of all indexes, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.index_reading.trust import ListedFile
from rocwheel.distributions.mirroring.choose import (
    choose_files,
    choose_projects,
    is_pattern,
    normalised_pattern,
    unmatched,
)
from rocwheel.foundation.collecting import map_collecting, raise_all
from rocwheel.foundation.errors import InputError, RocwheelError
from rocwheel.stores.urls import shown_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rocwheel.distributions.index_reading.source import IndexSource, ProjectListing
    from rocwheel.distributions.mirroring.choose import Choice

__all__ = ["MirrorPlan", "plan_mirror"]


class MirrorPlan(msgspec.Struct, frozen=True):
    """The files of a mirror."""

    files: tuple[ListedFile, ...]
    ignored: tuple[str, ...]
    """Names of what the pages list and is neither a wheel nor an sdist."""
    matched: tuple[str, ...]
    """The projects that the names and patterns fit, those for other GPUs included."""

    @property
    def size(self) -> int:
        """Bytes of the files, as far as the pages say."""
        return sum(file.size or 0 for file in self.files)


def plan_mirror(sources: Sequence[IndexSource], choice: Choice, serves: Callable[[str], bool]) -> MirrorPlan:
    """Read the pages of indexes and return what a mirror of them takes.

    ``serves`` is as for `choose_projects`. Raises, together, what is wrong: names that no index has, pages that can't
    be read, files that may not be trusted, and names that two indexes have for different bytes.
    """
    choice.check()
    where = " and ".join(source.url for source in sources)
    present = {source.url: _present(source, choice) for source in sources}
    raise_all(where, unmatched(choice, present))
    asked = [(source, name) for source in sources for name in choose_projects(choice, present[source.url], serves)]
    listings = map_collecting(lambda pair: pair[0].read_project(pair[1]), asked, where)
    problems = [problem for listing in listings if listing for problem in listing.problems]
    files = _united(_chosen(listings, choice), problems)
    raise_all(where, problems)
    if not files:
        found = f"has no file of {choice.version or 'these projects'}"
        raise InputError(where, found, remedy="Ask for other projects, versions or targets.")
    ignored = tuple(name for listing in listings if listing for name in listing.ignored)
    return MirrorPlan(files, ignored, _matched(choice, present))


def _present(source: IndexSource, choice: Choice) -> tuple[str, ...]:
    """Return the projects that an index has, of those that can be meant; the page of all may be huge, or missing."""
    if any(map(is_pattern, choice.projects)):
        return source.projects()
    names = [normalised_pattern(text) for text in choice.projects]
    return tuple(name for name in names if source.read_project(name) is not None)


def _matched(choice: Choice, present: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    everything = msgspec.structs.replace(choice, devel=True)
    names = (name for projects in present.values() for name in choose_projects(everything, projects, lambda _: True))
    return tuple(dict.fromkeys(names))


def _chosen(listings: Iterable[ProjectListing | None], choice: Choice) -> Iterable[ListedFile]:
    for listing in listings:
        yield from choose_files(choice, listing.files) if listing else ()


def _united(files: Iterable[ListedFile], problems: list[RocwheelError]) -> tuple[ListedFile, ...]:
    """Return each file once, from the first index that has it."""
    found: dict[str, ListedFile] = {}
    for file in files:
        first = found.setdefault(file.filename, file)
        if first.sha256 != file.sha256:
            text = f"is another file at {shown_url(file.url)}"
            problems.append(InputError(shown_url(first.url), text, remedy="Mirror one of the indexes."))
    return tuple(found.values())
