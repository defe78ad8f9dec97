"""Reading all artifacts of a folder at once, with every problem reported together."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.artifacts.archives.read import read_archive
from rocwheel.artifacts.archives.spool import decompress
from rocwheel.artifacts.reading.discovery import Discovery, StoredArtifact, find_artifacts
from rocwheel.artifacts.reading.folder import read_folder
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import map_collecting, serialised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rocwheel.artifacts.model.artifact import Artifact
    from rocwheel.core.errors import RocwheelError

__all__ = ["open_archive", "open_artifacts"]


@contextmanager
def open_artifacts(
    directory: Path,
    names: Sequence[str] = (),
    *,
    progress: Progress = SILENT,
    unread: list[RocwheelError] | None = None,
) -> Iterator[tuple[Artifact, ...]]:
    """Read the artifacts of ``directory``, or those named, in the order of their names.

    Folders are listed; archives are decompressed, once each, into nameless temporary files that last for the block.
    Raises `ProblemsError` with everything that looks like an artifact but can't be used, and with every name that does
    not exist; `InputError` when the folder can't be read; `WorkError` when the temporary folder is full. With a list
    ``unread``, these problems are appended to it, and the artifacts are all others, if there are any.
    """
    found = find_artifacts(directory)
    if names:
        found = _select(directory, found, names)
    with ExitStack() as stack:
        yield _read_all(str(directory), found, stack, progress, unread)


@contextmanager
def open_archive(archive: StoredArtifact, *, advance: Callable[[int], None]) -> Iterator[Artifact]:
    """Read one archive, wherever it lies, like `open_artifacts`; ``advance`` is called with the bytes read."""
    with ExitStack() as stack:
        yield _read(archive, stack, advance)


def _select(directory: Path, found: Discovery, names: Sequence[str]) -> Discovery:
    artifacts = tuple(artifact for artifact in found.artifacts if str(artifact.name) in names)
    missing = sorted(set(names) - {str(artifact.name) for artifact in artifacts})
    absent = [InputError(directory, f"holds no artifact {name}") for name in missing]
    return Discovery(artifacts, (*found.problems, *absent))


def _read_all(
    subject: str, found: Discovery, stack: ExitStack, progress: Progress, unread: list[RocwheelError] | None
) -> tuple[Artifact, ...]:
    advance = serialised(progress.advance)

    def read(stored: StoredArtifact) -> Artifact:
        return _read(stored, stack, advance)

    packed_size = sum(artifact.packed_size for artifact in found.artifacts)
    progress.begin("reading artifacts", packed_size)
    try:
        return map_collecting(read, found.artifacts, subject, found.problems, unread)
    finally:
        progress.end()


def _read(stored: StoredArtifact, stack: ExitStack, advance: Callable[[int], None]) -> Artifact:
    path = Path(stored.path)
    if not stored.is_archive:
        return read_folder(path, stored.name)
    spool = decompress(path, advance=advance)
    stack.enter_context(spool)
    return read_archive(path, stored.name, spool)
