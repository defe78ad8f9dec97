"""Packing the artifacts of a folder into archives, and unpacking archives, a few at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.artifacts.archives.extract import check_vacant, extract_artifact
from rocwheel.artifacts.archives.write import ArchiveFormat, write_archive
from rocwheel.artifacts.reading.discovery import StoredArtifact, find_archives
from rocwheel.artifacts.reading.open import open_archive, open_artifacts
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import map_collecting, serialised

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rocwheel.artifacts.model.artifact import Artifact
    from rocwheel.distributions.formats.source_date import SourceDate

__all__ = ["archive_artifacts", "extract_archives"]


def archive_artifacts(
    directory: Path,
    dest_dir: Path,
    names: Sequence[str],
    archive_format: ArchiveFormat,
    date: SourceDate,
    *,
    progress: Progress = SILENT,
) -> tuple[Path, ...]:
    """Write the artifacts of ``directory``, or those named, as archives into ``dest_dir``; return their paths.

    Archives already there are replaced. Raises `InputError` when ``dest_dir`` is ``directory``, and what
    `open_artifacts` and `write_archive` raise.
    """
    if dest_dir.resolve() == directory.resolve():
        remedy = "Choose another: a folder may hold an artifact only once."
        raise InputError(dest_dir, "is the folder of the artifacts itself", remedy=remedy)
    advance = serialised(progress.advance)

    def write(artifact: Artifact) -> Path:
        return write_archive(artifact, dest_dir, archive_format, date, advance=advance)

    with open_artifacts(directory, names, progress=progress) as artifacts:
        progress.begin("packing artifacts", sum(artifact.size for artifact in artifacts))
        try:
            return map_collecting(write, artifacts, str(directory))
        finally:
            progress.end()


def extract_archives(archives: Sequence[Path], dest_dir: Path, *, progress: Progress = SILENT) -> tuple[Path, ...]:
    """Unpack ``archives`` into folders of ``dest_dir`` and return these, in the order of their names.

    Raises `ProblemsError` before anything is written when a path is not an artifact archive or its folder already
    exists. Archives that turn out to be unusable are reported together; the others are unpacked.
    """
    found = find_archives(archives)
    problems = [*found.problems, *(problem for item in found.artifacts if (problem := _occupied(dest_dir, item)))]
    if problems:
        raise ProblemsError(str(dest_dir), problems)
    advance = serialised(progress.advance)

    def extract(stored: StoredArtifact) -> Path:
        with open_archive(stored, advance=advance) as artifact:
            return extract_artifact(artifact, dest_dir)

    progress.begin("extracting archives", sum(item.packed_size for item in found.artifacts))
    try:
        return map_collecting(extract, found.artifacts, str(dest_dir))
    finally:
        progress.end()


def _occupied(dest_dir: Path, stored: StoredArtifact) -> InputError | None:
    try:
        check_vacant(dest_dir, stored.name)
    except InputError as e:
        return e
    return None
