"""Reading all artifacts of a folder at once, with every problem reported together."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.artifacts.archive import read_archive
from rocwheel.artifacts.discovery import Discovery, StoredArtifact, find_artifacts
from rocwheel.artifacts.folder import read_folder
from rocwheel.artifacts.spool import decompress
from rocwheel.errors import InputError, ProblemsError, RocwheelError, WorkError
from rocwheel.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rocwheel.artifacts.artifact import Artifact

__all__ = ["open_archives", "open_artifacts"]

_WORKERS = min(4, os.cpu_count() or 1)
"""Archives decompressed at a time; a decoder holds up to 128 MiB."""


@contextmanager
def open_artifacts(
    directory: Path, names: Sequence[str] = (), *, progress: Progress = SILENT
) -> Iterator[tuple[Artifact, ...]]:
    """Read the artifacts of ``directory``, or those named, in the order of their names.

    Folders are listed; archives are decompressed, once each, into nameless temporary files that last for the block.
    Raises `ProblemsError` with everything that looks like an artifact and can't be used, and every name that is not
    there; `InputError` when the folder can't be read; `WorkError` when the temporary folder is full.
    """
    found = find_artifacts(directory)
    if names:
        found = _select(directory, found, names)
    with ExitStack() as stack:
        yield _read_all(str(directory), found, stack, progress)


@contextmanager
def open_archives(archives: Sequence[StoredArtifact], *, progress: Progress = SILENT) -> Iterator[tuple[Artifact, ...]]:
    """Read some archives, wherever they lie, like `open_artifacts`."""
    with ExitStack() as stack:
        yield _read_all("archives", Discovery(tuple(archives), ()), stack, progress)


def _select(directory: Path, found: Discovery, names: Sequence[str]) -> Discovery:
    artifacts = tuple(artifact for artifact in found.artifacts if str(artifact.name) in names)
    missing = sorted(set(names) - {str(artifact.name) for artifact in artifacts})
    absent = [InputError(directory, f"holds no artifact {name}") for name in missing]
    return Discovery(artifacts, (*found.problems, *absent))


def _read_all(subject: str, found: Discovery, stack: ExitStack, progress: Progress) -> tuple[Artifact, ...]:
    archives = [artifact.path for artifact in found.artifacts if artifact.is_archive]
    if archives:
        progress.begin("Decompressing artifacts", sum(_size(path) for path in archives))
    advance = _serialised(progress.advance)
    with ThreadPoolExecutor(_WORKERS) as executor:
        futures = [executor.submit(_read, artifact, stack, advance) for artifact in found.artifacts]
        _wait_for(futures)
    if archives:
        progress.end()
    problems = [*found.problems, *_failures(futures)]
    if problems:
        raise ProblemsError(subject, problems)
    return tuple(future.result() for future in futures)


def _read(stored: StoredArtifact, stack: ExitStack, advance: Callable[[int], None]) -> Artifact:
    path = Path(stored.path)
    if not stored.is_archive:
        return read_folder(path, stored.name)
    spool = decompress(path, advance=advance)
    stack.callback(spool.close)
    return read_archive(path, stored.name, spool)


def _wait_for(futures: Sequence[Future[Artifact]]) -> None:
    try:
        wait(futures)
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def _failures(futures: Sequence[Future[Artifact]]) -> Iterator[RocwheelError]:
    errors = [error for future in futures if (error := future.exception()) is not None]
    for error in errors:
        if isinstance(error, WorkError) or not isinstance(error, RocwheelError):
            raise error
    for error in errors:
        if isinstance(error, ProblemsError):
            yield from error.problems
        elif isinstance(error, RocwheelError):
            yield error


def _serialised(advance: Callable[[int], None]) -> Callable[[int], None]:
    lock = threading.Lock()

    def locked(amount: int) -> None:
        with lock:
            advance(amount)

    return locked


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
