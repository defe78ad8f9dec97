"""The making of a mirror: files are fetched and verified, then an index is written over them."""

from __future__ import annotations

import os
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.index.notes.known_files import read_known
from rocwheel.distributions.index.planning.yanked import Yanking
from rocwheel.distributions.index.write_index import write_index
from rocwheel.distributions.index_reading.source import stream_file
from rocwheel.foundation.collecting import attempt_all, raise_all, serialised
from rocwheel.foundation.errors import InputError, RocwheelError, WorkError, read_error
from rocwheel.foundation.files.file_stamp import FileStamp
from rocwheel.foundation.files.part_file import Expected, hash_file, receive
from rocwheel.foundation.progress import SILENT, Progress
from rocwheel.foundation.workers import open_workers
from rocwheel.stores.urls import shown_url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from rocwheel.distributions.index.notes.known_files import KnownFile
    from rocwheel.distributions.index.report import IndexReport
    from rocwheel.distributions.index_reading.trust import ListedFile
    from rocwheel.distributions.mirroring.plan import MirrorPlan

__all__ = ["FILES_FOLDER", "INDEX_FOLDER", "MirrorReport", "MirroredFile", "make_mirror"]

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
    """Names of what the pages list and is neither a wheel nor an sdist."""


def make_mirror(plan: MirrorPlan, dest_dir: Path, *, jobs: int = 4, progress: Progress = SILENT) -> MirrorReport:
    """Bring the files of a plan into ``dest_dir/dist`` and write an index over that folder, ``dest_dir/simple``.

    A file appears when it has the size and hash that its page says; of a transfer that was ended, the rest is fetched.
    What is there with the right hash stays, as do files of earlier mirrors. Where files can't be had, all others are
    fetched, the index is written over them, and then the errors are raised. So they are where the core metadata in a
    wheel is not what its page has promised.
    """
    folder, output = dest_dir / FILES_FOLDER, dest_dir / INDEX_FOLDER
    known = {one.entry.filename: one for one in read_known(output).files.values()}
    problems: list[RocwheelError] = []
    files = _fetch_all(plan, folder, known, jobs, progress, problems)
    if not files:
        raise_all(str(dest_dir), problems)
    names = {file.filename for file in files}
    yanked = {one.filename: one.yanked for one in plan.files if one.yanked is not None and one.filename in names}
    yanking = Yanking(yanked)
    index: IndexReport = write_index(folder, output, progress=progress, unread=problems, yanking=yanking)
    problems += _broken_promises(plan, folder, output)
    raise_all(str(dest_dir), problems)
    return MirrorReport(index.output, files, plan.ignored)


def _fetch_all(
    plan: MirrorPlan,
    folder: Path,
    known: Mapping[str, KnownFile],
    jobs: int,
    progress: Progress,
    problems: list[RocwheelError],
) -> tuple[MirroredFile, ...]:
    fetch = partial(_fetch, folder, known, serialised(progress.advance))
    progress.begin("fetching distributions", plan.size)
    try:
        with open_workers(jobs) as executor:
            futures = [executor.submit(fetch, file) for file in plan.files]
            return tuple(attempt_all(Future.result, futures, problems))
    finally:
        progress.end()


def _fetch(
    folder: Path, known: Mapping[str, KnownFile], advance: Callable[[int], None], file: ListedFile
) -> MirroredFile:
    path = folder / file.filename
    is_new = not _is_present(path, file, known.get(file.filename))
    if is_new:
        expected = Expected(source=shown_url(file.url), size=file.size, sha256=file.sha256)
        receive(path, expected, partial(stream_file, file), advance)
        _set_time(path, file.upload_time)
    else:
        advance(file.size or 0)
    size = path.stat().st_size
    return MirroredFile(file.filename, file.project, size, file.sha256, shown_url(file.url), is_new)


def _is_present(path: Path, file: ListedFile, known: KnownFile | None) -> bool:
    """Return whether a file is there; other bytes under its name are an error, as installers may have locked them."""
    try:
        stamp = FileStamp.of(path.stat())
    except FileNotFoundError:
        return False
    except OSError as e:
        raise read_error(path, e) from e
    try:
        found = known.entry.sha256 if known and known.holds_for(stamp) else hash_file(path)
    except OSError as e:
        raise read_error(path, e) from e
    if found != file.sha256:
        text = f"is there with the SHA-256 {found}, not that of {shown_url(file.url)}"
        raise WorkError(path, text, expected=file.sha256, remedy="Remove it, or mirror into another folder.")
    return True


def _set_time(path: Path, upload_time: str | None) -> None:
    """Give a file the date of its upload, which the index lists again; a malformed one is nobody's loss."""
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat((upload_time or "").replace("Z", "+00:00")).timestamp()
        os.utime(path, (moment, moment))


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
        and entry.metadata_sha256 != file.metadata_sha256
    ]
