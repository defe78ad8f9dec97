"""What a mirror will hold: the wanted files of all indexes, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.messages import quoted
from rocwheel.core.names import is_utf8
from rocwheel.core.workers import map_collecting, raise_all
from rocwheel.distributions.index_reading.index_below import raise_for_folders
from rocwheel.distributions.index_reading.trust import ListedFile
from rocwheel.distributions.mirroring.choose import (
    choose_files,
    choose_projects,
    is_pattern,
    normalised_pattern,
    unmatched,
)
from rocwheel.distributions.mirroring.follow import Followed, follow
from rocwheel.distributions.mirroring.shelf import Shelf
from rocwheel.stores.store import MissingFileError, PassingError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rocwheel.distributions.index_reading.source import IndexSource
    from rocwheel.distributions.mirroring.choose import Choice
    from rocwheel.distributions.mirroring.needs import NeedsReader

__all__ = ["MirrorPlan", "plan_mirror"]


class MirrorPlan(msgspec.Struct, frozen=True):
    """The files of a mirror."""

    files: tuple[ListedFile, ...]
    ignored: tuple[str, ...]
    """Names of what the pages list and is neither a wheel nor an sdist, or a wheel variant that is not wanted."""
    matched: tuple[str, ...]
    """The projects that the names and patterns fit, those for other GPUs included, and what they require."""
    absent: tuple[str, ...] = ()
    """Requirements that no file of the indexes meets."""
    unusable: dict[str, tuple[str, ...]] = {}
    """Names of files that require packages for other GPUs, and the names of these."""
    fetched: frozenset[str] = frozenset()
    """Names of the files that were fetched already, to see what they require."""

    @property
    def size(self) -> int:
        """Bytes of the files, as far as the pages say."""
        return sum(file.size or 0 for file in self.files)


def plan_mirror(
    sources: Sequence[IndexSource], choice: Choice, serves: Callable[[str], bool], needs: NeedsReader | None = None
) -> MirrorPlan:
    """Read the pages of indexes and return what a mirror of them takes.

    ``serves`` is as for `choose_projects`; ``needs`` reads what files require, if that is wanted. Raises, together,
    what is wrong: names that no index has, those to take from all included, pages that can't be read, files that may
    not be trusted, and names that two indexes have for different bytes, of projects that are taken from all.
    """
    choice.check()
    try:
        return _plan(sources, choice, serves, needs)
    except PassingError:
        raise
    except RocwheelError:
        raise_for_folders(source.address for source in sources)
        raise


def _plan(
    sources: Sequence[IndexSource], choice: Choice, serves: Callable[[str], bool], needs: NeedsReader | None
) -> MirrorPlan:
    where = " and ".join(source.url for source in sources)
    shelf = Shelf(sources, choice, serves)
    present = _present(sources, choice, shelf)
    either = " or ".join(source.url for source in sources)
    if not present:
        raise_all(where, [error for source in sources if (error := _page_error(source))])
    raise_all(where, [*unmatched(choice, present, either), *_unknown_pooled(choice, shelf, either)])
    files = _named_files(shelf, choice, choose_projects(choice, present, serves), where)
    everything = msgspec.structs.replace(choice, devel=True)
    plan = MirrorPlan(files, shelf.ignored, choose_projects(everything, present, lambda _: True))
    if needs is None:
        return plan
    followed = follow(files, choice, serves, shelf.offered, needs.read)
    shelf.check(where)
    return _with_required(plan, followed, shelf.ignored, frozenset(needs.fetched))


def _present(sources: Sequence[IndexSource], choice: Choice, shelf: Shelf) -> tuple[str, ...]:
    """Return the projects of all indexes, of those that can be meant; the page of all may be huge, or missing."""
    if any(map(is_pattern, choice.projects)):
        return tuple(dict.fromkeys(name for source in sources for name in source.projects()))
    names = dict.fromkeys(normalised_pattern(text) for text in choice.projects)
    return tuple(name for name in names if is_utf8(name) and shelf.has(name))


def _page_error(source: IndexSource) -> MissingFileError | None:
    """Return the error of an index that has no page at all: its address is wrong, and no name of a project."""
    try:
        source.require_page()
    except MissingFileError as e:
        return e
    except StoreError:  # may have projects, for all that can be seen
        return None
    return None


def _unknown_pooled(choice: Choice, shelf: Shelf, where: str) -> Iterator[InputError]:
    """Yield an error for each name of which no versions can be taken from all indexes."""
    for name in sorted(choice.pooled):
        if is_pattern(name):
            found = f"{quoted(name)} is a pattern"
            yield InputError("--pool", found, expected="the name of a project", remedy="Give it once for each project.")
        elif not (is_utf8(name) and shelf.has(name)):
            yield InputError("--pool", f"{quoted(name)} is no project of {where}", remedy="Correct the name.")


def _named_files(shelf: Shelf, choice: Choice, wanted: Sequence[str], where: str) -> tuple[ListedFile, ...]:
    """Return the files of the wanted projects; raise `InputError` for none, and what is wrong with their pages."""
    offered = map_collecting(shelf.offered, wanted, where)
    shelf.check(where)
    files = tuple(file for group in offered for file in choose_files(choice, group))
    if not files:
        found = f"has no file of {choice.version or 'these projects'}{choice.machines.shown}"
        raise InputError(where, found, remedy="Ask for other projects, versions or targets.")
    return files


def _with_required(
    plan: MirrorPlan, followed: Followed, ignored: tuple[str, ...], fetched: frozenset[str]
) -> MirrorPlan:
    """Return a plan with what its files require, too."""
    every = {file.filename: file for file in (*plan.files, *followed.files)}
    return MirrorPlan(
        tuple(every.values()),
        ignored,
        tuple(dict.fromkeys((*plan.matched, *followed.required))),
        followed.absent,
        followed.unusable,
        fetched,
    )
