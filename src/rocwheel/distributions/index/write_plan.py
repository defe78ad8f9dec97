"""The plan of an index carried out: what it lists, its pages, what is stale, and the notes for the next run."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.scratch import remove_abandoned
from rocwheel.distributions.index.notes.known_files import (
    NOTES,
    Begun,
    KnownExtras,
    KnownIndex,
    write_begun,
    write_known,
)
from rocwheel.distributions.index.options import IndexOptions
from rocwheel.distributions.index.pages.simple_pages import FRONT_PAGE, PAGES, make_project_page, make_root_page
from rocwheel.distributions.index.pages.upload_times import read_times
from rocwheel.distributions.index.placing.extra_files import (
    IndexContent,
    changed_extras,
    check_extras,
    digest_families,
    digest_maker,
    note_extras,
    read_made,
    remove_stale_extras,
    write_extras,
)
from rocwheel.distributions.index.placing.places import check_targets
from rocwheel.distributions.index.placing.previous import read_previous, remove_stale
from rocwheel.distributions.index.placing.project_pages import note_project, note_root, write_page
from rocwheel.distributions.index.planning.plan_index import IndexPlan
from rocwheel.distributions.index.planning.standing import is_standing_root
from rocwheel.distributions.index.reading.read_folder import Listed, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from rocwheel.distributions.index.entries.entry import IndexEntry
    from rocwheel.distributions.index.notes.known_files import KnownFile

__all__ = ["PlanWriter"]

_PAGES = frozenset(PAGES)


class _Pages(msgspec.Struct, frozen=True):
    """Which pages now stand."""

    digests: dict[str, tuple[str, ...]]
    """By project; of the page that lists all projects, by no name."""
    edited: list[str]
    """The paths of those that somebody had edited."""


class PlanWriter(msgspec.Struct, frozen=True, dict=True):
    """The work of one run: what is known of an index, and what it shall hold."""

    output: Path
    sources: Sequence[Source]
    known: KnownIndex
    plan: IndexPlan
    options: IndexOptions

    def write(self, files: dict[str, KnownFile]) -> list[str]:
        """Write what has changed, and return the paths of pages that somebody had edited.

        ``files`` are all that was read, by what leads from the output to them. Raises as `write_index` does.
        """
        self._check_places()
        made = self._read_made()
        is_same = made is not None and self._lists_the_same()
        extras = made if made is not None and is_same else self._make_extras(made)
        previous = read_previous(self.output, self.known.written, self.plan.wanted)
        self._remove_abandoned(previous)
        new = changed_extras(self.output, extras)
        if self.plan.changed or previous or new or extras.keys() != set(self.known.extras):
            self._note_beginning(previous, extras)  # if this run is killed, the next one knows what it may have written
        pages = self._unlist_replaced()
        placed = {one.key: self._place(one) for one in self.plan.to_place}
        begun = time.time_ns()
        write_extras(self.output, {name: data for name, data in new.items() if "/" in name})
        self._write_pages(pages)
        families = self.options.write_families(self.plan.projects)
        if digest_families(families) != (self.known.made.families if is_same else ""):
            self._note_beginning(previous, extras)  # also where nothing but what families list has changed
            extras = self._add_families(extras, families)
        self._write_root(pages, families, has_front_page=FRONT_PAGE in extras)
        pages.edited.extend(self._write_beside_root(extras))
        remove_stale(self._folders, self.output, previous, self.plan.wanted)
        remove_stale_extras(self.output, self.known.extras, extras)
        # Last: what is removed changes the folders' stamps.
        dated = {one.key: one.known for one in self.plan.listed.values()}
        noted = note_extras(self._maker, extras, families)
        self._note_end({**files, **dated, **placed}, pages, families, noted, begun)
        return pages.edited

    @property
    def _folders(self) -> list[Path]:
        return [source.places.dist_dir for source in self.sources]

    def _check_places(self) -> None:
        output, variants = self.output, self.plan.variants
        beside = [output / project / one.entry.filename for project, files in variants.items() for one in files]
        files = [*self.plan.targets, *beside, *(output / name for name in NOTES)]
        check_targets(output, self.plan.changed, files, {*self.known.projects, *self.known.written})

    def _read_made(self) -> dict[str, bytes] | None:
        """Return the extras of the last run, if it came to its end and they stand as it has left them."""
        return read_made(self.output, self.known.made, self._maker) if self.known.is_finished else None

    @cached_property
    def _maker(self) -> str:
        """A value that is equal if the same files are made of the same content."""
        return digest_maker(self.options.extras, self.options.family)

    def _make_extras(self, made: Mapping[str, bytes] | None) -> Mapping[str, bytes]:
        plan = self.plan
        standing = plan.standing.keys() if made else ()
        content = IndexContent(plan.projects, plan.yanked, plan.bases, self.options.family, standing, made or {})
        extras = self.options.extras(content)
        check_extras(self.output, extras, self.known.extras)
        return extras

    def _add_families(self, extras: Mapping[str, bytes], families: Mapping[str, IndexContent]) -> Mapping[str, bytes]:
        """Return the extras made again with what the indexes of families list, now that these stand."""
        plan = self.plan
        own, projects = self.options.family, plan.projects
        return self.options.extras(IndexContent(projects, plan.yanked, plan.bases, own, projects, extras, families))

    def _lists_the_same(self) -> bool:
        """Return whether the index lists what it did when the last run ended."""
        plan, known = self.plan, self.known
        return not plan.changed and plan.projects.keys() == known.projects.keys() and plan.yanked == known.yanked

    def _remove_abandoned(self, previous: Iterable[str]) -> None:
        # Also where this run has nothing to write.
        for source in self.sources:
            remove_abandoned(source.places.dist_dir, source.listing.hidden)
        for folder in (self.output, *(self.output / project for project in {*previous, *self.plan.changed})):
            remove_abandoned(folder)

    def _note_beginning(self, previous: Mapping[str, AbstractSet[str]], extras: Iterable[str]) -> None:
        affected = {project: self.plan.wanted.get(project, set()) for project in {*previous, *self.plan.changed}}
        names = tuple(sorted({*self.known.extras, *extras}))
        write_begun(self.output, Begun(_listed(_join(previous, affected)), names, self.plan.yanked))

    def _place(self, one: Listed) -> KnownFile:
        placed = one.places.place(one.found)
        path = one.places.dist_dir / placed.entry.filename
        if path in self.options.memory:  # for other indexes of the same files: linking changes the stamp
            apart = msgspec.structs.replace(placed, placed=(), placement="")
            self.options.memory[path] = one.found._replace(known=apart)
        return placed

    def _unlist_replaced(self) -> _Pages:
        """Take files off the pages that list them with other bytes, before the index gets these under their names."""
        pages = _Pages({}, [])
        holds_files = any(source.places.holds_files for source in self.sources)
        for project, entries in self.plan.changed.items() if holds_files else ():
            listed = dict(read_times(self.output / project).keys())
            replaced = {one.filename for one in entries if listed.get(one.filename) not in (None, "", one.sha256)}
            if replaced:
                kept = [one for one in self.plan.linked(project) if one.filename not in replaced]
                self._write_project(project, kept, pages)
        return pages

    def _write_project(self, project: str, entries: list[IndexEntry], pages: _Pages) -> None:
        page = make_project_page(project, entries, self.plan.bases, self.plan.yanked)
        is_known = self.known.is_finished and project not in pages.digests
        noted = self.known.projects.get(project) if is_known else None
        pages.edited.extend(write_page(self.output / project, page, noted))
        pages.digests[project] = page.digests

    def _write_pages(self, pages: _Pages) -> None:
        """Write the pages of the projects that have changed."""
        for project in self.plan.changed:
            variants = self.plan.variants.get(project, ())
            write_extras(self.output / project, {one.entry.filename: one.data for one in variants})
            self._write_project(project, self.plan.linked(project), pages)

    def _write_root(self, pages: _Pages, families: Iterable[str], *, has_front_page: bool) -> None:
        """Write the page that lists all projects, if that has changed."""
        output, plan, known = self.output, self.plan, self.known
        is_same = has_front_page == (FRONT_PAGE in known.extras)
        if not (is_same and is_standing_root(output, known, plan.projects, families)):
            page = make_root_page(plan.projects, has_front_page=has_front_page, families=families)
            pages.edited.extend(write_page(output, page, known.root if known.is_finished else None))
            pages.digests[""] = page.digests

    def _write_beside_root(self, extras: Mapping[str, bytes]) -> list[str]:
        """Write the extras beside the page that lists all projects, and return the paths of edited ones."""
        noted = self.known.made.digests if self.known.is_finished else {}
        return write_extras(self.output, {name: data for name, data in extras.items() if "/" not in name}, noted)

    def _note_end(
        self, files: dict[str, KnownFile], pages: _Pages, families: Iterable[str], made: KnownExtras, written_at: int
    ) -> None:
        plan, digests = self.plan, pages.digests
        noted = {
            project: note_project(self.output / project, entries, digests[project], written_at)
            for project, entries in plan.changed.items()
        }
        known = KnownIndex(
            files=files,
            written=_listed(plan.wanted),
            yanked=plan.yanked,
            extras=tuple(sorted(made.digests)),
            folders=tuple(source.prefix for source in self.sources),
            placement=self.sources[0].places.placement.value,
            machine=self.options.machine,
            projects={**plan.standing, **noted},
            made=made,
            root=note_root(self.output, families, digests[""], written_at) if "" in digests else self.known.root,
        )
        write_known(self.output, known)


def _listed(names: Mapping[str, AbstractSet[str]]) -> dict[str, tuple[str, ...]]:
    return {project: tuple(sorted(one - _PAGES)) if len(one) > len(_PAGES) else () for project, one in names.items()}


def _join(*parts: Mapping[str, AbstractSet[str]]) -> dict[str, set[str]]:
    joined: defaultdict[str, set[str]] = defaultdict(set)
    for part in parts:
        for project, names in part.items():
            joined[project] |= names
    return joined
