"""A simple index as a tree of static files, for ``file://`` and for any web server."""

from __future__ import annotations

import time
from collections.abc import Sequence
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.index.notes.found import Found
from rocwheel.distributions.index.notes.known_files import (
    NOTES,
    Begun,
    KnownIndex,
    read_known,
    write_begun,
    write_known,
)
from rocwheel.distributions.index.pages.simple_pages import FRONT_PAGE, PAGES, make_project_page, make_root_page
from rocwheel.distributions.index.pages.upload_times import UploadTimes
from rocwheel.distributions.index.pages.variants_files import make_variants_files
from rocwheel.distributions.index.placing.extra_files import (
    Extras,
    IndexContent,
    changed_extras,
    check_extras,
    no_extras,
    remove_stale_extras,
    write_extras,
)
from rocwheel.distributions.index.placing.place_files import FilePlacement, Places
from rocwheel.distributions.index.placing.places import check_output, check_targets
from rocwheel.distributions.index.placing.previous import read_previous, remove_stale
from rocwheel.distributions.index.placing.project_pages import note_project, note_root, write_page
from rocwheel.distributions.index.planning.plan_index import IndexPlan, date_listed, plan_index
from rocwheel.distributions.index.planning.standing import is_standing_root
from rocwheel.distributions.index.planning.yanked import KEEP_YANKED, Yanking
from rocwheel.distributions.index.reading.listing import list_folder
from rocwheel.distributions.index.reading.read_folder import Listed, Source, folder_names, read_folders, unite
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.scratch import remove_abandoned
from rocwheel.foundation.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rocwheel.distributions.index.notes.known_files import KnownFile
    from rocwheel.foundation.errors import RocwheelError

__all__ = ["FilePlacement", "IndexOptions", "IndexReport", "choose_output", "default_output", "write_index"]


_PAGES = frozenset(PAGES)


class IndexReport(msgspec.Struct, frozen=True):
    """What an index holds."""

    output: str
    projects: dict[str, list[str]]
    """File names by project."""
    ignored: tuple[str, ...]
    """Names in the folders that are neither wheels nor sdists."""
    subfolders: tuple[str, ...]
    """Names of folders in them that hold distributions; these are not in the index."""
    yanked: dict[str, str] = {}
    """Reasons of the files that are yanked (:pep:`592`), by name; empty for none."""
    future: tuple[str, ...] = ()
    """Names of new files that are dated in the future; the index has the present instead."""
    edited: tuple[str, ...] = ()
    """Paths of pages that somebody had edited; but for marks of yanked files, they are again as they were."""
    variants: dict[str, dict[str, tuple[str, ...]]] = {}
    """The properties of wheel variants (a draft), by the name of the file that lists them and by label."""
    families: dict[str, IndexReport] = {}
    """Indexes of what is in the folders and in one of the ``subfolders``, by the name of that."""


class IndexOptions(msgspec.Struct, frozen=True):
    """What is rarely asked of an index."""

    upload_time: int | None = None
    """Of all files that are new, in microseconds since 1970; none for the time of each file's last change."""
    extras: Extras = no_extras
    """Makes further files of what the index lists."""
    family: str = ""
    """Whose index it is, below that of all; empty for that one."""
    memory: dict[Path, Found] = msgspec.field(default_factory=dict)
    """What this process has read for other indexes, by path."""
    served: Path | None = None
    """The folder that a web server has to serve for the index; none for the one above it."""
    may_be_empty: bool = False
    """Whether the first folder may lack distributions."""
    machine: tuple[str, ...] = ()
    """The GPU targets of the machines that the index is for, for its wheel variants (a draft); empty for any."""


def default_output(dist_dir: Path) -> Path:
    """Return the absolute path where the index of ``dist_dir`` goes by default: folders side by side have one each."""
    folder = dist_dir.resolve()
    return folder.parent / ("simple" if folder.name in ("dist", "") else f"simple-{folder.name}")


def choose_output(dist_dirs: Sequence[Path], output: Path | None) -> Path:
    """Return where an index goes: the folder that is given, else the default for the only folder.

    Raises `InputError` where neither is there.
    """
    if output is None and len(dist_dirs) != 1:
        option, found = "--output", "is missing"
        raise InputError(option, found, expected="the folder for the index of several folders")
    return output or default_output(dist_dirs[0])


def write_index(
    dist_dirs: Path | Sequence[Path],
    output: Path,
    *,
    placement: FilePlacement = FilePlacement.RELATIVE,
    progress: Progress = SILENT,
    unread: list[RocwheelError] | None = None,
    yanking: Yanking = KEEP_YANKED,
    options: IndexOptions | None = None,
) -> IndexReport:
    """Write a simple index over the wheels and sdists that stand in folders into the folder ``output``.

    Each page is replaced as a whole, after the files that it lists and before the page that lists it: a reader sees
    each project either as it was or as it is now. What is gone is removed when no page lists it any more. Core metadata
    stands next to each file as ``FILE.metadata``. Only what an earlier run has written is replaced or removed. Files
    that an earlier run has read are not read again unless they have changed since. Files that were yanked stay so,
    but for the changes that ``yanking`` asks for.

    Raises `ProblemsError` with everything that is wrong in the folders, before anything is written; with a list
    ``unread``, the problems of single files are appended to it, and the index lists all others. Raises `InputError` for
    folders that can't be used, and for what stands where the index has to go; `WorkError` when the index can't be
    written.
    """
    options = options or IndexOptions()
    folders = (dist_dirs,) if isinstance(dist_dirs, Path) else tuple(dist_dirs)
    sources = _list_sources(folders, output, placement, options)
    known = read_known(output)
    read = read_folders(sources, known.files, progress, unread, options.memory)
    times = UploadTimes(time.time_ns() // 1000, options.upload_time)
    listed, future = date_listed(unite(sources, read), output, known, times)
    names = {name for source in sources for name in source.listing.distributions}
    plan = plan_index(output, _comparable(known, sources, options), listed, names, yanking)
    plan = msgspec.structs.replace(plan, variants=make_variants_files(plan.projects, options.machine))
    edited = _Writing(output, sources, known, plan, options).write({key: one.known for key, one in read.items()})
    return IndexReport(
        str(output),
        {project: [entry.filename for entry in entries] for project, entries in plan.projects.items()},
        tuple(name for source in sources for name in source.listing.ignored),
        tuple(name for source in sources for name in source.listing.subfolders),
        plan.yanked,
        future,
        tuple(edited),
        {one.entry.filename: one.variants for files in plan.variants.values() for one in files},
    )


def _list_sources(
    folders: Sequence[Path], output: Path, placement: FilePlacement, options: IndexOptions
) -> tuple[Source, ...]:
    sources = []
    for number, folder in enumerate(folders):
        places = Places(folder, output, placement)
        check_output(output, folder, options.served, holds_files=places.holds_files)
        listing = list_folder(folder, output, may_be_empty=options.may_be_empty and not number)
        sources.append(Source(places, listing, f"{relpath(folder.resolve(), output.resolve())}/"))
    if len({source.prefix for source in sources}) < len(sources):
        raise InputError(folder_names(sources), "one folder is given twice", remedy="Give each once.")
    return tuple(sources)


def _comparable(known: KnownIndex, sources: Sequence[Source], options: IndexOptions) -> KnownIndex:
    """Return what is known without what was written for other folders or machines: its pages lead elsewhere."""
    same = (known.folders, known.machine) == (tuple(source.prefix for source in sources), options.machine)
    return known if same else msgspec.structs.replace(known, projects={}, root=None)


class _Writing(msgspec.Struct, frozen=True):
    """The work of one run: what is known of an index, and what it shall hold."""

    output: Path
    sources: Sequence[Source]
    known: KnownIndex
    plan: IndexPlan
    options: IndexOptions

    @property
    def folders(self) -> list[Path]:
        """The folders of distributions."""
        return [source.places.dist_dir for source in self.sources]

    def write(self, files: dict[str, KnownFile]) -> list[str]:
        """Write what has changed, and return the paths of pages that somebody had edited.

        ``files`` are all that was read, by what leads from the output to them.
        """
        output, known, plan, wanted = self.output, self.known, self.plan, self.plan.wanted
        beside = [output / project / one.entry.filename for project, files in plan.variants.items() for one in files]
        check_targets(output, plan.changed, [*plan.targets, *beside, *(output / name for name in NOTES)])
        extras = self.options.extras(IndexContent(plan.projects, plan.yanked, plan.bases, self.options.family))
        check_extras(output, extras, known.extras)
        new = changed_extras(output, extras)
        previous = read_previous(output, known.written, wanted)
        for folder in (*self.folders, output, *(output / project for project in {*previous, *plan.changed})):
            remove_abandoned(folder)  # also where this run has nothing to write
        if plan.changed or previous or new or extras.keys() != set(known.extras):
            # First: if this run is killed, the next one knows what it may have written.
            affected = {project: wanted.get(project, set()) for project in {*previous, *plan.changed}}
            write_begun(output, Begun(_listed(_join(previous, affected)), tuple(sorted({*known.extras, *extras}))))
        placed = {one.key: self._place(one) for one in plan.to_place}
        begun = time.time_ns()
        write_extras(output, {name: data for name, data in new.items() if "/" in name})
        pages, edited = self._write_pages(has_front_page=FRONT_PAGE in extras)
        write_extras(output, {name: data for name, data in new.items() if "/" not in name})
        remove_stale(self.folders, output, previous, wanted)
        remove_stale_extras(output, known.extras, extras)
        # Last: what is removed changes the folders' stamps.
        noted = {
            project: note_project(output / project, entries, pages[project], begun)
            for project, entries in plan.changed.items()
        }
        root = note_root(output, pages[""], begun) if "" in pages else known.root
        dated = {one.key: one.known for one in plan.listed.values()}
        state = self._state({**files, **dated, **placed}, extras, wanted)
        write_known(output, msgspec.structs.replace(state, projects={**plan.standing, **noted}, root=root))
        return edited

    def _state(self, files: Mapping[str, KnownFile], extras: Iterable[str], wanted: dict[str, set[str]]) -> KnownIndex:
        return KnownIndex(
            files=dict(files),
            written=_listed(wanted),
            yanked=self.plan.yanked,
            extras=tuple(sorted(extras)),
            folders=tuple(source.prefix for source in self.sources),
            placement=self.sources[0].places.placement.value,
            machine=self.options.machine,
        )

    def _place(self, one: Listed) -> KnownFile:
        placed = one.places.place(one.found)
        path = one.places.dist_dir / placed.entry.filename
        if path in self.options.memory:  # for other indexes of the same files: linking changes the stamp
            apart = msgspec.structs.replace(placed, placed=(), placement="")
            self.options.memory[path] = one.found._replace(known=apart)
        return placed

    def _write_pages(self, *, has_front_page: bool) -> tuple[dict[str, tuple[str, ...]], list[str]]:
        """Write the pages of what has changed, and then the one that lists all projects, if that has changed.

        Return the digests of those that now stand, by project, the last one's by no name, and the paths of those that
        somebody had edited.
        """
        output, plan, known = self.output, self.plan, self.known
        digests: dict[str, tuple[str, ...]] = {}
        edited: list[str] = []
        bases = plan.bases
        noted = known.projects if known.is_finished else {}
        for project in plan.changed:
            write_extras(output / project, {one.entry.filename: one.data for one in plan.variants.get(project, ())})
            page = make_project_page(project, plan.linked(project), bases, plan.yanked)
            edited += write_page(output / project, page, noted.get(project))
            digests[project] = page.digests
        is_same = has_front_page == (FRONT_PAGE in known.extras)
        if not (is_same and is_standing_root(output, known, plan.projects)):
            page = make_root_page(plan.projects, has_front_page=has_front_page)
            edited += write_page(output, page, known.root if known.is_finished else None)
            digests[""] = page.digests
        return digests, edited


def _listed(names: Mapping[str, set[str]]) -> dict[str, tuple[str, ...]]:
    return {project: tuple(sorted(one - _PAGES)) for project, one in names.items()}


def _join(*parts: dict[str, set[str]]) -> dict[str, set[str]]:
    return {project: set().union(*(part.get(project, set()) for part in parts)) for part in parts for project in part}
