"""The front page's values, found in the entries of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from rocwheel.distributions.front_page.content import FrontPage, ListedFile, ListedProject, YankedPackage
from rocwheel.distributions.front_page.find_cards import find_cards
from rocwheel.distributions.index.pages.upload_times import render_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocwheel.distributions.front_page.content import Gpu, KeptProject
    from rocwheel.distributions.index.entries.entry import IndexEntry

__all__ = ["find_content", "find_taken", "find_withdrawn"]

_DATE = len("2026-01-31")


def find_content(
    projects: Mapping[str, Sequence[IndexEntry]],
    yanked: Mapping[str, str],
    gpus: Sequence[Gpu],
    url: str = "",
    kept: Mapping[str, KeptProject] | None = None,
) -> FrontPage:
    """Return what the page of an index says.

    ``projects`` has the files of each, the oldest first; ``yanked`` the reasons of yanked files by name; ``gpus`` the
    targets to choose among, in the order to show. ``url`` is where the index will be, empty when not known.
    ``kept`` has projects that are listed as an earlier page has them.
    """
    kept = kept or {}
    taken = find_taken(projects, yanked)
    cards = find_cards(taken, gpus, find_withdrawn(taken, yanked))
    served = {card.gpu.target for card in cards}
    every = [entry for entries in projects.values() for entry in entries]
    return FrontPage(
        projects=tuple(
            kept.get(name) or _list_project(name, entries, taken[name], yanked) for name, entries in projects.items()
        ),
        cards=tuple(cards),
        absent=tuple(gpu for gpu in gpus if gpu.products and gpu.target not in served),
        file_count=len(every),
        total_size=sum(entry.size for entry in every),
        url=url,
    )


def find_taken(
    projects: Mapping[str, Sequence[IndexEntry]], yanked: Mapping[str, str]
) -> dict[str, Sequence[IndexEntry]]:
    """Return the files of each project that installers take; the newest version's where all are yanked."""
    return {name: _taken(entries, yanked) for name, entries in projects.items()}


def find_withdrawn(taken: Mapping[str, Sequence[IndexEntry]], yanked: Mapping[str, str]) -> dict[str, YankedPackage]:
    """Return the projects all of whose files are yanked, by name; ``taken`` is as `find_taken` returns it."""
    if not yanked:
        return {}
    return {
        name: YankedPackage(name, entries[0].version, next(filter(None, (yanked[one.filename] for one in entries)), ""))
        for name, entries in taken.items()
        if all(entry.filename in yanked for entry in entries)
    }


def _taken(entries: Sequence[IndexEntry], yanked: Mapping[str, str]) -> list[IndexEntry]:
    """Return the files of the version that installers take: the newest, a final one if there is one.

    Where everything is yanked, these are the newest version's files.
    """
    if len(entries) == 1:
        return list(entries)
    usable = [entry for entry in entries if entry.filename not in yanked] or list(entries)
    versions = list(dict.fromkeys(entry.version for entry in reversed(usable)))
    version = next((version for version in versions if not Version(version).is_prerelease), versions[0])
    return [entry for entry in usable if entry.version == version]


def _list_project(
    name: str, entries: Sequence[IndexEntry], taken: Sequence[IndexEntry], yanked: Mapping[str, str]
) -> ListedProject:
    version = taken[0].version
    shown = [entry for entry in entries if entry.version == version or entry.filename in yanked]
    versions = dict.fromkeys(entry.version for entry in reversed(entries))
    return ListedProject(
        name=name,
        version=version,
        summary=next((entry.about.summary for entry in taken if entry.about.summary), ""),
        files=tuple(_list_file(entry, yanked) for entry in shown),
        others=tuple(other for other in versions if other != version),
        targets=tuple(dict.fromkeys(target for entry in taken for target in entry.about.targets)),
    )


def _list_file(entry: IndexEntry, yanked: Mapping[str, str]) -> ListedFile:
    reason = yanked.get(entry.filename)
    since = render_time(entry.upload_time)[:_DATE]
    return ListedFile(entry.filename, entry.version, entry.size, entry.requires_python or "", reason, since)
