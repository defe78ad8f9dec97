"""A simple index as a tree of static files, for ``file://`` and for any web server."""

from __future__ import annotations

import errno
import time
from contextlib import contextmanager
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from packaging.utils import is_normalized_name

from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.scratch import remove_abandoned
from rocwheel.core.workers import rare_collections
from rocwheel.distributions.index.locking import locked_index
from rocwheel.distributions.index.notes.known_files import KnownIndex, read_known
from rocwheel.distributions.index.options import IndexOptions
from rocwheel.distributions.index.pages.upload_times import read_clock
from rocwheel.distributions.index.pages.variants_files import make_variants_files
from rocwheel.distributions.index.placing.extra_files import IndexContent
from rocwheel.distributions.index.placing.place_files import Places
from rocwheel.distributions.index.placing.places import check_output
from rocwheel.distributions.index.planning.plan_index import date_listed, plan_index
from rocwheel.distributions.index.reading.listing import list_folder
from rocwheel.distributions.index.reading.read_folder import Source, folder_names, read_folders, unite
from rocwheel.distributions.index.report import IndexReport
from rocwheel.distributions.index.write_plan import PlanWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.core.errors import RocwheelError
    from rocwheel.distributions.index.planning.plan_index import IndexPlan

__all__ = ["WrittenIndex", "write_index", "write_locked_index"]


class WrittenIndex(NamedTuple):
    """What a run found and did, and what the index lists now."""

    report: IndexReport
    content: IndexContent


def write_index(
    dist_dirs: Path | Sequence[Path],
    output: Path,
    *,
    options: IndexOptions | None = None,
    unread: list[RocwheelError] | None = None,
) -> IndexReport:
    """Write a simple index over the wheels and sdists that stand in folders into the folder ``output``.

    Each page is replaced as a whole, after the files that it lists and before the page that lists it: a reader sees
    each project either as it was or as it is now. What is gone is removed when no page lists it any more. Core metadata
    stands next to each file as ``FILE.metadata``. Only what an earlier run has written is replaced or removed. Files
    that an earlier run has read are not read again unless they have changed since. Files that were yanked stay so,
    but for the changes that ``options`` ask for. While another run writes the same index, this one waits for it.

    Raises `ProblemsError` with everything that is wrong in the folders, before anything is written; with a list
    ``unread``, the problems of single files are appended to it, and the index lists all others. Raises `InputError` for
    folders that can't be used, and for what stands where the index has to go; `WorkError` when the index can't be
    written.
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
    """Do what `write_index` does in an index that this process has locked."""
    options = options or IndexOptions()
    folders = (dist_dirs,) if isinstance(dist_dirs, Path) else tuple(dist_dirs)
    with rare_collections():
        # In a function of its own: what it no longer needs is gone when the block ends, which looks through the rest.
        return _write(folders, output, options, unread)


def _write(
    folders: Sequence[Path], output: Path, options: IndexOptions, unread: list[RocwheelError] | None
) -> WrittenIndex:
    known = read_known(output)
    _remove_links(output, known)
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
    """Have an error for any file of the index that found no room name the index, its disk, and what is used up."""
    try:
        yield
    except WorkError as e:
        number = e.__cause__.errno if isinstance(e.__cause__, OSError) else None
        if number not in {errno.ENOSPC, errno.EDQUOT} or not Path(e.source).is_relative_to(output):
            raise
        disk = next(place for place in (output.resolve(), *output.resolve().parents) if place.is_mount())
        remedy = "Make room there, and run it again; until then the index lists nothing that is not there."
        why = f"its disk, {disk}, is full" if number == errno.ENOSPC else f"the quota on its disk, {disk}, is used up"
        raise WorkError(output, f"can't be written, as {why}", remedy=remedy) from e


def _remove_links(output: Path, known: KnownIndex) -> None:
    """Remove what a killed run has left in folders of projects, before files are read: links to them may be there.

    A file that loses such a link and gets a proper one looks as if it had been written to.
    """
    for project in () if known.is_finished else known.written:
        if is_normalized_name(project):
            remove_abandoned(output / project)


def _list_sources(folders: Sequence[Path], output: Path, options: IndexOptions) -> tuple[Source, ...]:
    sources = []
    for number, folder in enumerate(folders):
        places = Places(folder, output, options.placement)
        listing = list_folder(folder, output, may_be_empty=options.may_be_empty and not number)
        # Behind it, as no server serves a folder that is not there.
        check_output(output, folder, options.served, holds_files=places.holds_files)
        listing = listing.without(options.left_out)
        sources.append(Source(places, listing, f"{relpath(folder.resolve(), output.resolve())}/"))
    if len({source.prefix for source in sources}) < len(sources):
        raise InputError(folder_names(folders), "one folder is given twice", remedy="Give each once.")
    return tuple(sources)


def _comparable(known: KnownIndex, sources: Sequence[Source], options: IndexOptions) -> KnownIndex:
    """Return what is known without what was written for other folders or machines: its pages lead elsewhere."""
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
