"""The making of a mirror: files are fetched and verified, then an index is written over them."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import attempt_all, open_workers, raise_all, serialised, worker_count
from rocwheel.distributions.index.notes.known_files import read_known
from rocwheel.distributions.index.options import IndexOptions
from rocwheel.distributions.index.planning.yanked import Yanking
from rocwheel.distributions.index.write_index import write_index
from rocwheel.distributions.mirroring.fetch import fetch_file
from rocwheel.distributions.mirroring.others import check_mirror, find_others, remove_others
from rocwheel.stores.urls import shown_url

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from rocwheel.distributions.index.notes.known_files import KnownIndex
    from rocwheel.distributions.index.report import IndexReport
    from rocwheel.distributions.index_reading.trust import ListedFile
    from rocwheel.distributions.mirroring.plan import MirrorPlan

__all__ = ["FILES_FOLDER", "INDEX_FOLDER", "MirrorOptions", "MirrorReport", "MirroredFile", "make_mirror"]

FILES_FOLDER, INDEX_FOLDER = "dist", "simple"


class MirroredFile(msgspec.Struct, frozen=True):
    """A file of a mirror."""

    filename: str
    project: str
    bytes: int
    sha256: str
    url: str
    """Where it came from."""
    is_new: bool
    """Whether it was not there before."""


class MirrorReport(msgspec.Struct, frozen=True):
    """What a mirror holds of what was asked for."""

    output: str
    """The folder of the index."""
    files: tuple[MirroredFile, ...]
    ignored: tuple[str, ...]
    """Names of what the pages list and is neither a wheel nor an sdist, or a wheel variant that is not wanted."""
    absent: tuple[str, ...] = ()
    """Requirements that no file of the indexes meets."""
    unusable: dict[str, tuple[str, ...]] = {}
    """Names of files that require packages for other GPUs, and the names of these."""
    removed: tuple[str, ...] = ()
    """Names of the files of earlier mirrors that were removed."""


class MirrorOptions(msgspec.Struct, frozen=True):
    """What is rarely asked of a mirror."""

    jobs: int = 4
    """Files that are fetched at a time."""
    exact: bool = False
    """Whether other distributions in the folder, such as those of earlier mirrors, are removed."""
    machine: tuple[str, ...] | None = None
    """The GPU targets that its index names for wheel variants (a draft), as `IndexOptions` has them; none for those of
    the last run."""


def make_mirror(
    plan: MirrorPlan, dest_dir: Path, options: MirrorOptions | None = None, progress: Progress = SILENT
) -> MirrorReport:
    """Bring the files of a plan into ``dest_dir/dist`` and write an index over that folder, ``dest_dir/simple``.

    A file appears when it has the size and hash that its page says; of a transfer that was ended, the rest is fetched.
    What is there with the right hash stays, as do files of earlier mirrors, unless they are to be removed. Where files
    can't be had, all others are fetched, the index is written over them, and then the errors are raised; nothing is
    removed then. So they are where the core metadata in a wheel is not what its page has promised. Raises `InputError`
    before all that where the folder is no mirror (`check_mirror`).
    """
    options = options or MirrorOptions()
    folder, output = dest_dir / FILES_FOLDER, dest_dir / INDEX_FOLDER
    check_mirror(plan, folder, exact=options.exact)
    known = read_known(output)
    problems: list[RocwheelError] = []
    files = _fetch_all(plan, folder, known, options.jobs, progress, problems)
    if not files:
        raise_all(str(dest_dir), problems)
    others = find_others(plan, folder) if options.exact and not problems else frozenset()
    machine = known.machine if options.machine is None else options.machine
    index: IndexReport = write_index(
        folder,
        output,
        unread=problems,
        options=IndexOptions(
            progress=progress,
            yanking=_yanking(plan, {file.filename for file in files}),
            machine=machine,
            left_out=others,
        ),
    )
    remove_others(folder, others)
    problems += _broken_promises(plan, folder, output)
    raise_all(str(dest_dir), problems)
    return MirrorReport(index.output, files, plan.ignored, plan.absent, plan.unusable, tuple(sorted(others)))


def _yanking(plan: MirrorPlan, names: Collection[str]) -> Yanking:
    """Return the marks of the files that are there, as their pages have them."""
    there = [file for file in plan.files if file.filename in names]
    return Yanking(
        {file.filename: file.yanked for file in there if file.yanked is not None},
        tuple(file.filename for file in there if file.yanked is None),
    )


def _fetch_all(
    plan: MirrorPlan,
    folder: Path,
    known: KnownIndex,
    jobs: int,
    progress: Progress,
    problems: list[RocwheelError],
) -> tuple[MirroredFile, ...]:
    entries = {one.entry.filename: one for one in known.files.values()}
    advance = serialised(progress.advance)

    def fetch(file: ListedFile) -> MirroredFile:
        is_new = fetch_file(folder, file, known=entries.get(file.filename), advance=advance)
        size = (folder / file.filename).stat().st_size
        is_new = is_new or file.filename in plan.fetched
        return MirroredFile(file.filename, file.project, size, file.sha256, shown_url(file.url), is_new)

    progress.begin("fetching distributions", plan.size)
    try:
        with open_workers(worker_count(jobs)) as executor:
            futures = [executor.submit(fetch, file) for file in plan.files]
            return tuple(attempt_all(Future.result, futures, problems))
    finally:
        progress.end()


def _broken_promises(plan: MirrorPlan, folder: Path, output: Path) -> list[RocwheelError]:
    """Return an error for each wheel whose core metadata is not what the page has promised beside it (:pep:`658`)."""
    entries = {known.entry.filename: known.entry for known in read_known(output).files.values()}
    return [
        InputError(
            shown_url(file.url),
            "has other core metadata than its page promises",
            expected=f"the SHA-256 {file.metadata_sha256}",
            remedy=f"Ask who publishes it, and remove {folder / file.filename} unless that is well.",
        )
        for file in plan.files
        if file.filename.endswith(".whl")
        and file.metadata_sha256
        and (entry := entries.get(file.filename))
        and entry.sha256 == file.sha256  # else another file, which is told by itself
        and entry.metadata_sha256 != file.metadata_sha256
    ]
