"""Writes a simple index as a tree of static files, for ``file://`` URLs and any web server.

A run first plans the index, and finds the parts that already exist. Unchanged pages are neither regenerated nor read.
Changes are visible in the stamps of the distributions, of their files in the index, of the pages, and of the project's
folder. The folder's stamp changes with every added or removed file.
"""

from __future__ import annotations

import errno
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from packaging.utils import is_normalized_name

from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.python import rare_collections
from rocwheel.core.scratch import locked_folder, remove_abandoned
from rocwheel.core.workers import Readers
from rocwheel.index.entry import IndexEntry
from rocwheel.index.extra_files import (
    Extras,
    IndexContent,
    changed_extras,
    check_extras,
    digest_families,
    digest_maker,
    no_extras,
    note_extras,
    read_made,
    remove_stale_extras,
    write_extras,
)
from rocwheel.index.folder import Listed, Source, folder_names, list_folder, read_folders, require_addresses, unite
from rocwheel.index.folder_notes import (
    NOTES,
    Found,
    Journal,
    KnownExtras,
    KnownIndex,
    KnownProject,
    read_families,
    read_known,
    write_begun,
    write_known,
)
from rocwheel.index.pages import (
    FRONT_PAGE,
    METADATA_SUFFIX,
    PAGES,
    VariantsFile,
    group_by_project,
    make_project_page,
    make_root_page,
    make_variants_files,
    read_times,
)
from rocwheel.index.placing import (
    FilePlacement,
    Placer,
    check_output,
    check_targets,
    note_project,
    note_root,
    page_stamps,
    read_previous,
    remove_stale,
    write_page,
)
from rocwheel.index.upload_times import read_clock
from rocwheel.index.yanked import KEEP_YANKED, Yanking, change_yanked, read_yanked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from rocwheel.core.errors import RocwheelError
    from rocwheel.index.folder_notes import KnownFile
    from rocwheel.index.upload_times import UploadTimes


@contextmanager
def locked_index(output: Path) -> Iterator[None]:
    """Lock an index during the block, and wait for another run if necessary.

    Raises the same `WorkError` as `locked_folder`.

    The index of a family shares the lock of the index above it, because a run for that index writes both indexes. Other
    code checks whether the folder's path is free.
    """
    if output.exists() and not output.is_dir():
        yield
        return
    is_family = output.name in read_families(output.parent)
    with locked_folder(output.parent if is_family else output):
        yield


WriteFamilies = Callable[[Collection[str]], Mapping[str, IndexContent]]
"""A function that writes the family indexes below an index with these projects, and returns their contents by name."""


def _no_families(_: Collection[str]) -> Mapping[str, IndexContent]:
    return {}


class IndexOptions(msgspec.Struct, frozen=True):
    """The options of an index, except its folders."""

    placement: FilePlacement = FilePlacement.RELATIVE
    """Whether the pages link to the original files, or to copies or hard links in the index."""
    yanking: Yanking = KEEP_YANKED
    """The files to yank or unyank."""
    progress: Progress = SILENT
    """The progress of reading the distributions."""
    upload_time: int | None = None
    """The date of all new files, in microseconds since 1970, or `None` for the last modification date of each file."""
    extras: Extras = no_extras
    """A function that generates additional files from the contents of the index."""
    family: str = ""
    """The family of an index below the main index. Empty for the main index."""
    memory: dict[Path, Found] = msgspec.field(default_factory=dict)
    """The distributions that this process has read for other indexes, keyed by path."""
    served: Path | None = None
    """The folder that a web server must serve for the index, or `None` for its parent folder."""
    may_be_empty: bool = False
    """Whether the first folder may contain no distributions."""
    machine: tuple[str, ...] = ()
    """The GPU targets of the machines for which the index lists wheel variants (a draft). Empty means any machine."""
    left_out: frozenset[str] = frozenset()
    """Names of distributions to omit from the index, even though they are in its folders."""
    write_families: WriteFamilies = _no_families
    """A function that is called when the pages of projects are complete, before pages link to family indexes."""
    readers: Readers | None = None
    """The readers of the distributions, or `None` for threads of this process."""


def default_output(dist_dir: Path) -> Path:
    """Return the default absolute path for the index of ``dist_dir``. Sibling folders have different defaults."""
    folder = dist_dir.resolve()
    return folder.parent / ("simple" if folder.name in ("dist", "") else f"simple-{folder.name}")


def choose_output(dist_dirs: Sequence[Path], output: Path | None) -> Path:
    """Return the folder for an index: the specified folder, or the default for a single folder.

    Raises `InputError` if neither is available.
    """
    if output is None and len(dist_dirs) != 1:
        option, found = "--output", "is missing"
        raise InputError(option, found, expected="the folder for the index of several folders")
    return output or default_output(dist_dirs[0])


class IndexReport(msgspec.Struct, frozen=True):
    """The contents of an index."""

    output: str
    projects: dict[str, list[str]]
    """The file names of each project."""
    ignored: tuple[str, ...]
    """The names of entries in the folders that are neither wheels nor sdists."""
    subfolders: tuple[str, ...]
    """The names of subfolders whose distributions are not in the index."""
    yanked: dict[str, str] = {}
    """The reasons for yanking files (:pep:`592`), keyed by file name. A reason may be empty."""
    future: tuple[str, ...] = ()
    """The names of new files with dates in the future. The index lists the current time instead."""
    edited: tuple[str, ...] = ()
    """The paths of edited pages. They were restored, except for marks of yanked files."""
    variants: dict[str, dict[str, tuple[str, ...]]] = {}
    """The properties of wheel variants (a draft), keyed by the name of the file that lists them and by label."""
    families: dict[str, IndexReport] = {}
    """The family indexes, keyed by the name of their subfolder. Each index also lists the shared files."""


_PAGES = frozenset(PAGES)


def find_standing(
    output: Path,
    known: KnownIndex,
    sources: Iterable[Source],
    listed: Iterable[Listed],
    projects: Mapping[str, Iterable[IndexEntry]],
) -> dict[str, KnownProject]:
    """Return the projects whose pages and listed files are definitely unchanged since the last run."""
    beside = {source.placer: source.listing.beside for source in sources}
    stale = {
        one.known.entry.project
        for one in listed
        if one.known is not known.files.get(one.key) or not one.placer.holds(one.known, beside[one.placer])
    }
    return {
        project: noted
        for project, entries in projects.items()
        if project not in stale
        and (noted := known.projects.get(project))
        and noted.files == tuple([entry.filename for entry in entries])
        and noted.stamps
        and noted.stamps == page_stamps(f"{output}/{project}", with_folder=True)
    }


def is_standing_root(output: Path, known: KnownIndex, projects: Collection[str], families: Iterable[str]) -> bool:
    """Return whether the page of all projects definitely lists these projects and families.

    In that case, the page is unchanged since the last run.
    """
    root = known.root if known.is_finished else None
    if not (root and root.stamps and root.files == tuple(families)):
        return False
    return known.projects.keys() == set(projects) and root.stamps == page_stamps(str(output))


class IndexPlan(msgspec.Struct, frozen=True, dict=True):
    """The planned contents of an index, and the parts that already exist."""

    listed: dict[str, Listed]
    """The distributions, keyed by file name."""
    projects: dict[str, list[IndexEntry]]
    standing: dict[str, KnownProject]
    """The projects that don't need any work."""
    changed: dict[str, list[IndexEntry]]
    """The other projects."""
    yanked: dict[str, str]
    """The reasons for yanking files, keyed by file name."""
    variants: dict[str, list[VariantsFile]] = {}
    """The files that list the variants of each version, keyed by project."""

    @property
    def to_place(self) -> list[Listed]:
        """The distributions of the changed projects."""
        return [self.listed[entry.filename] for entries in self.changed.values() for entry in entries]

    @property
    def targets(self) -> list[Path]:
        """The paths that are written for these distributions, except pages and the files next to pages."""
        return [target for one in self.to_place for target in one.placer.targets(one.known)]

    @cached_property
    def bases(self) -> dict[str, str]:
        """The relative path from a project's folder to each file's folder, keyed by file name."""
        bases = {placer: placer.base for placer in {one.placer for one in self.listed.values()}}
        beside = {one.entry.filename: "" for files in self.variants.values() for one in files}
        return {name: bases[one.placer] for name, one in self.listed.items()} | beside

    def linked(self, project: str) -> list[IndexEntry]:
        """Return the entries that the page of a project links to."""
        return [*self.projects[project], *(one.entry for one in self.variants.get(project, ()))]

    @cached_property
    def wanted(self) -> dict[str, AbstractSet[str]]:
        """The names that belong in each project's folder."""
        more: defaultdict[str, set[str]] = defaultdict(set)
        for project, files in self.variants.items():
            more[project].update(one.entry.filename for one in files)
        for entry in (one.known.entry for one in self.listed.values() if one.placer.holds_files):
            more[entry.project].add(entry.filename)
            if entry.metadata_sha256:
                more[entry.project].add(f"{entry.filename}{METADATA_SUFFIX}")
        # Thousands of projects may have only their pages, so they share one set.
        return {project: _PAGES | more[project] if project in more else _PAGES for project in self.projects}


def date_listed(
    listed: Mapping[str, Listed], output: Path, known: KnownIndex, times: UploadTimes
) -> tuple[dict[str, Listed], tuple[str, ...]]:
    """Return distributions with their upload dates, and the names of new distributions with dates in the future."""
    pages: dict[str, dict[tuple[str, str], int]] = {}
    dated, future = dict(listed), []
    for name, one in listed.items():
        entry = one.known.entry
        if (noted := known.files.get(one.key)) is one.known and not times.is_future(entry.upload_time):
            continue
        if noted and noted.entry.sha256 == entry.sha256:
            earlier: int | None = noted.entry.upload_time
        else:
            if entry.project not in pages:
                pages[entry.project] = read_times(output / entry.project)
            earlier = pages[entry.project].get((name, entry.sha256))
        changed = one.known.stamp.modified // 1000
        upload_time = times.choose(earlier, changed)
        if upload_time != entry.upload_time:
            entry = msgspec.structs.replace(entry, upload_time=upload_time)
            dated[name] = one._replace(found=one.found._replace(known=msgspec.structs.replace(one.known, entry=entry)))
        if times.given is None and changed > times.now:
            future.append(name)
    return dated, tuple(future)


def plan_index(
    output: Path, known: KnownIndex, sources: Sequence[Source], listed: dict[str, Listed], yanking: Yanking
) -> IndexPlan:
    """Return the plan for an index of the ``listed`` files in the sources. Unreadable files can also be yanked.

    Raises `InputError` for files that can't be yanked.
    """
    names = {name for source in sources for name in source.listing.distributions}
    projects = group_by_project(one.known.entry for one in listed.values())
    standing = find_standing(output, known, sources, listed.values(), projects)
    edited = read_yanked(output, projects.keys() - standing.keys())
    folders = {one.placer.dist_dir for one in listed.values()}
    place = folders.pop() if len(folders) == 1 else str(output)  # errors about a missing file mention this location
    yanked = change_yanked({**known.yanked, **edited}, yanking, names, place)
    moved = {name for name in {**known.yanked, **yanked} if known.yanked.get(name) != yanked.get(name)}
    standing = {project: noted for project, noted in standing.items() if moved.isdisjoint(noted.files)}
    changed = {project: entries for project, entries in projects.items() if project not in standing}
    return IndexPlan(listed, projects, standing, changed, yanked)


class _Pages(msgspec.Struct, frozen=True):
    """The pages after writing."""

    digests: dict[str, tuple[str, ...]]
    """The digests of each project's pages. The page of all projects has an empty key."""
    edited: list[str]
    """The paths of edited pages."""


class PlanWriter(msgspec.Struct, frozen=True, dict=True):
    """Writes the differences between the known and the planned contents of an index."""

    output: Path
    sources: Sequence[Source]
    known: KnownIndex
    plan: IndexPlan
    options: IndexOptions

    def write(self, files: dict[str, KnownFile]) -> list[str]:
        """Write the changes, and return the paths of edited pages.

        ``files`` contains all files that were read, keyed by their path relative to the output. Raises the same errors
        as `write_index`.
        """
        self._check_targets()
        # Use the additional files of the last run if that run was completed and the files are unchanged.
        made = read_made(self.output, self.known.made, self._maker) if self.known.is_finished else None
        is_same = made is not None and self._lists_the_same()
        extras = made if made is not None and is_same else self._make_extras(made)
        previous = read_previous(self.output, self.known.written, self.plan.wanted)
        self._remove_abandoned(previous)
        new = changed_extras(self.output, extras)
        if self.plan.changed or previous or new or extras.keys() != set(self.known.extras):
            self._note_beginning(
                previous, extras
            )  # if this run is killed, the next run knows which files it may have written
        pages = self._unlist_replaced()
        placed = {one.key: self._place(one) for one in self.plan.to_place}
        begun = time.time_ns()
        write_extras(self.output, {name: data for name, data in new.items() if "/" in name})
        self._write_pages(pages)
        families = self.options.write_families(self.plan.projects)
        if digest_families(families) != (self.known.made.families if is_same else ""):
            self._note_beginning(
                previous, extras
            )  # this is also necessary if only the contents of families have changed
            extras = self._add_families(extras, families)
        self._write_root(pages, families, has_front_page=FRONT_PAGE in extras)
        beside = {name: data for name, data in extras.items() if "/" not in name}
        pages.edited.extend(
            write_extras(self.output, beside, self.known.made.digests if self.known.is_finished else {})
        )
        dist_dirs = [source.placer.dist_dir for source in self.sources]
        remove_stale(dist_dirs, self.output, previous, self.plan.wanted)
        remove_stale_extras(self.output, self.known.extras, extras)
        # This comes last, because removing files changes the stamps of folders.
        dated = {one.key: one.known for one in self.plan.listed.values()}
        noted = note_extras(self._maker, extras, families)
        self._note_end({**files, **dated, **placed}, pages, families, noted, begun)
        return pages.edited

    def _check_targets(self) -> None:
        output, variants = self.output, self.plan.variants
        beside = [output / project / one.entry.filename for project, files in variants.items() for one in files]
        files = [*self.plan.targets, *beside, *(output / name for name in NOTES)]
        check_targets(output, self.plan.changed, files, {*self.known.projects, *self.known.written})

    @cached_property
    def _maker(self) -> str:
        """A digest of the makers. Makers with the same digest generate the same files from the same content."""
        return digest_maker(self.options.extras, self.options.family)

    def _make_extras(self, made: Mapping[str, bytes] | None) -> Mapping[str, bytes]:
        plan = self.plan
        standing = plan.standing.keys() if made else ()
        content = IndexContent(plan.projects, plan.yanked, plan.bases, self.options.family, standing, made or {})
        extras = self.options.extras(content)
        check_extras(self.output, extras, self.known.extras)
        return extras

    def _add_families(self, extras: Mapping[str, bytes], families: Mapping[str, IndexContent]) -> Mapping[str, bytes]:
        """Return the additional files, regenerated with the contents of the finished family indexes."""
        plan = self.plan
        own, projects = self.options.family, plan.projects
        return self.options.extras(IndexContent(projects, plan.yanked, plan.bases, own, projects, extras, families))

    def _lists_the_same(self) -> bool:
        """Return whether the contents of the index are the same as at the end of the last run."""
        plan, known = self.plan, self.known
        return not plan.changed and plan.projects.keys() == known.projects.keys() and plan.yanked == known.yanked

    def _remove_abandoned(self, previous: Iterable[str]) -> None:
        # Do this even if there is nothing to write.
        for source in self.sources:
            remove_abandoned(source.placer.dist_dir, source.listing.hidden)
        for folder in (self.output, *(self.output / project for project in {*previous, *self.plan.changed})):
            remove_abandoned(folder)

    def _note_beginning(self, previous: Mapping[str, AbstractSet[str]], extras: Iterable[str]) -> None:
        affected = {project: self.plan.wanted.get(project, set()) for project in {*previous, *self.plan.changed}}
        names = tuple(sorted({*self.known.extras, *extras}))
        write_begun(self.output, Journal(_listed(_join(previous, affected)), names, self.plan.yanked))

    def _place(self, one: Listed) -> KnownFile:
        placed = one.placer.place(one.found)
        path = one.placer.dist_dir / placed.entry.filename
        if (
            path in self.options.memory
        ):  # other indexes of the same files need this, because a hard link changes the stamp
            apart = msgspec.structs.replace(placed, placed=(), placement="")
            self.options.memory[path] = one.found._replace(known=apart)
        return placed

    def _unlist_replaced(self) -> _Pages:
        """Remove files from pages that list different bytes, before the new bytes are added to the index."""
        pages = _Pages({}, [])
        holds_files = any(source.placer.holds_files for source in self.sources)
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
        for project in self.plan.changed:
            variants = self.plan.variants.get(project, ())
            write_extras(self.output / project, {one.entry.filename: one.data for one in variants})
            self._write_project(project, self.plan.linked(project), pages)

    def _write_root(self, pages: _Pages, families: Iterable[str], *, has_front_page: bool) -> None:
        """Write the page of all projects if it has changed."""
        output, plan, known = self.output, self.plan, self.known
        is_same = has_front_page == (FRONT_PAGE in known.extras)
        if not (is_same and is_standing_root(output, known, plan.projects, families)):
            page = make_root_page(plan.projects, has_front_page=has_front_page, families=families)
            pages.edited.extend(write_page(output, page, known.root if known.is_finished else None))
            pages.digests[""] = page.digests

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
            placement=self.sources[0].placer.placement.value,
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


class WrittenIndex(NamedTuple):
    """The results of a run, and the new contents of the index."""

    report: IndexReport
    content: IndexContent


def write_index(
    dist_dirs: Path | Sequence[Path],
    output: Path,
    *,
    options: IndexOptions | None = None,
    unread: list[RocwheelError] | None = None,
) -> IndexReport:
    """Write a simple index of the wheels and sdists in some folders to the folder ``output``.

    Each page is replaced atomically, after the files that it lists and before the page that lists it. Therefore, a
    reader sees either the old or the new state of a project. Files are removed after the pages that listed them. Core
    metadata is next to each file as ``FILE.metadata``. Only files from earlier runs are replaced or removed. Files that
    earlier runs have read are read again only if they have changed. Yanked files remain yanked unless ``options``
    changes their marks. If another run is writing the same index, this run waits.

    Raises `ProblemsError` with all problems in the folders before anything is written. If ``unread`` is a list,
    problems with individual files are appended to it instead, and the index lists the other files. Raises `InputError`
    for unusable folders, and for existing files that the index must not replace. Raises `WorkError` if the index can't
    be written.
    """
    with locked_index(output):
        return write_locked_index(dist_dirs, output, options=options, unread=unread).report


def write_locked_index(
    dist_dirs: Path | Sequence[Path],
    output: Path,
    *,
    options: IndexOptions | None = None,
    unread: list[RocwheelError] | None = None,
) -> WrittenIndex:
    """Write an index in the same way as `write_index`. This process must have locked the index."""
    options = options or IndexOptions()
    folders = (dist_dirs,) if isinstance(dist_dirs, Path) else tuple(dist_dirs)
    with rare_collections():
        # This is a separate function, so that its data is released before the rest of the block runs.
        return _write(folders, output, options, unread)


def _write(
    folders: Sequence[Path], output: Path, options: IndexOptions, unread: list[RocwheelError] | None
) -> WrittenIndex:
    known = read_known(output)
    # Before reading files, remove leftovers of a killed run from project folders. There may be hard links to the
    # files. A file that loses such a link and gets a final one looks modified.
    for project in () if known.is_finished else known.written:
        if is_normalized_name(project):
            remove_abandoned(output / project)
    sources = _list_sources(folders, output, options)
    read = read_folders(sources, known.files, options.progress, unread, options.memory, options.readers)
    times = read_clock(time.time_ns() // 1000, options.upload_time)
    listed, future = date_listed(unite(sources, read), output, known, times)
    plan = plan_index(output, _comparable(known, sources, options), sources, listed, options.yanking)
    variants = make_variants_files(plan.projects, options.machine, may_lack=options.may_be_empty)
    plan = msgspec.structs.replace(plan, variants=variants)
    writer = PlanWriter(output, sources, known, plan, options)
    with _naming_full_disk(output):
        edited = writer.write({key: one.known for key, one in read.items()})
    report = msgspec.structs.replace(_report(output, sources, plan), future=future, edited=tuple(edited))
    return WrittenIndex(report, IndexContent(plan.projects, plan.yanked, plan.bases, options.family))


@contextmanager
def _naming_full_disk(output: Path) -> Iterator[None]:
    """Convert an error about a full disk into an error that mentions the index, its disk, and the reason."""
    try:
        yield
    except WorkError as e:
        number = e.__cause__.errno if isinstance(e.__cause__, OSError) else None
        if number not in {errno.ENOSPC, errno.EDQUOT} or not Path(e.source).is_relative_to(output):
            raise
        disk = next(place for place in (output.resolve(), *output.resolve().parents) if place.is_mount())
        remedy = (
            "Free up space on the disk, and run the command again. Until then, the index lists only existing files."
        )
        why = f"its disk, {disk}, is full" if number == errno.ENOSPC else f"the quota on its disk, {disk}, is used up"
        raise WorkError(output, f"can't be written because {why}", remedy=remedy) from e


def _list_sources(folders: Sequence[Path], output: Path, options: IndexOptions) -> tuple[Source, ...]:
    sources = []
    for number, folder in enumerate(folders):
        places = Placer(folder, output, options.placement)
        listing = list_folder(folder, output, may_be_empty=options.may_be_empty and not number)
        # This check comes after the listing, because no server can serve a missing folder.
        check_output(output, folder, options.served, holds_files=places.holds_files)
        listing = listing.without(options.left_out)
        prefix = f"{relpath(folder.resolve(), output.resolve())}/"
        require_addresses(str(folder), {folder: prefix})
        sources.append(Source(places, listing, prefix))
    if len({source.prefix for source in sources}) < len(sources):
        raise InputError(
            folder_names(folders), "the same folder is specified twice", remedy="Specify each folder only once."
        )
    return tuple(sources)


def _comparable(known: KnownIndex, sources: Sequence[Source], options: IndexOptions) -> KnownIndex:
    """Return the records without pages for other folders or machines, because the links in those pages differ."""
    same = (known.folders, known.machine) == (tuple(source.prefix for source in sources), options.machine)
    return known if same else msgspec.structs.replace(known, projects={}, root=None)


def _report(output: Path, sources: Sequence[Source], plan: IndexPlan) -> IndexReport:
    return IndexReport(
        str(output),
        {project: [entry.filename for entry in entries] for project, entries in plan.projects.items()},
        tuple(name for source in sources for name in source.listing.ignored),
        tuple(name for source in sources for name in source.listing.subfolders),
        plan.yanked,
        variants={one.entry.filename: one.variants for files in plan.variants.values() for one in files},
    )
