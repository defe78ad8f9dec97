"""Which pages of an index stand as an earlier run has left them.

Where nothing has changed, neither are the pages made again nor are those that stand there read. The stamps tell it: of
the distributions and of what was written for them, of the pages, and of the project's folder, which changes with every
file that comes or goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.distributions.index.placing.project_pages import page_stamps

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from rocwheel.core.reading import FileStamp
    from rocwheel.distributions.index.entries.entry import IndexEntry
    from rocwheel.distributions.index.notes.known_files import KnownIndex, KnownProject
    from rocwheel.distributions.index.reading.read_folder import Listed, Source

__all__ = ["find_standing", "is_standing_root"]


def find_standing(
    output: Path,
    known: KnownIndex,
    sources: Iterable[Source],
    listed: Iterable[Listed],
    projects: Mapping[str, Iterable[IndexEntry]],
) -> dict[str, KnownProject]:
    """Return the projects whose pages, and all that they list, are certainly as the last run has left them."""
    beside = {source.places: source.listing.beside for source in sources}
    stale = {one.known.entry.project for one in listed if not _stands(known, one, beside[one.places])}
    return {
        project: noted
        for project, entries in projects.items()
        if project not in stale
        and (noted := known.projects.get(project))
        and noted.files == tuple([entry.filename for entry in entries])
        and noted.stamps
        and noted.stamps == page_stamps(f"{output}/{project}", with_folder=True)
    }


def _stands(known: KnownIndex, one: Listed, beside: Mapping[str, FileStamp]) -> bool:
    noted = one.found.known
    return noted is known.files.get(one.key) and one.places.holds(noted, beside)


def is_standing_root(output: Path, known: KnownIndex, projects: Collection[str], families: Iterable[str]) -> bool:
    """Return whether the page that lists the projects certainly lists these and names these families.

    Then it is as the last run has left it.
    """
    root = known.root if known.is_finished else None
    if not (root and root.stamps and root.files == tuple(families)):
        return False
    return known.projects.keys() == set(projects) and root.stamps == page_stamps(str(output))
