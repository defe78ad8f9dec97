"""Packs artifacts into archives, and unpacks archives into folders that appear when they are complete."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from rocwheel.artifacts.archives import ArchiveFormat, write_archive
from rocwheel.artifacts.artifact import MANIFEST_NAME, Artifact, FileKind, Member, format_stages
from rocwheel.artifacts.reading import StoredArtifact, find_artifact_archives, open_artifact_archive, open_artifacts
from rocwheel.core.errors import InputError, write_error
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.scratch import scratch_folder
from rocwheel.core.workers import map_in_threads, raise_all, serialized

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rocwheel.artifacts.artifact import Artifact, ArtifactName
    from rocwheel.core.reading import FileRange
    from rocwheel.wheels.sdist import SourceDate


_CHUNK = 16 << 20


def check_vacant(folder: Path, name: ArtifactName) -> None:
    """Raise `InputError` if ``folder`` already has an entry ``name``, which prevents extraction."""
    place = folder / str(name)
    if os.path.lexists(place):
        raise InputError(place, "already exists", remedy="Remove the existing folder, or choose another folder.")


def extract_artifact(artifact: Artifact, folder: Path) -> Path:
    """Write ``artifact`` as a new folder in ``folder``, and return the new folder's path.

    The members are known to be safe (see `checked`): they are inside the folder and not below a symlink. Raises
    `InputError` if the folder already exists, and `WorkError` if the folder can't be written to. In both cases, no
    partial output remains.
    """
    check_vacant(folder, artifact.name)
    place = folder / str(artifact.name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with scratch_folder(place) as temporary:
            root = temporary / "artifact"
            root.mkdir()
            write_artifact(artifact, root)
            root.rename(place)
    except OSError as e:
        if e.errno in {errno.ENOTEMPTY, errno.EEXIST}:  # another process was faster
            check_vacant(folder, artifact.name)
        raise write_error(place, e) from e
    return place


def write_artifact(artifact: Artifact, root: Path, *, hard_links: bool = False) -> None:
    """Write ``artifact``, whose members are known to be safe, to the empty folder ``root``. Raises `OSError`.

    With ``hard_links``, files that are on the same file system and not in an archive are linked instead of copied.
    Linked files keep their modes.
    """
    (root / MANIFEST_NAME).write_bytes(format_stages(artifact.stages))
    for stage in artifact.stages:
        (root / stage).mkdir(parents=True, exist_ok=True)
    written: dict[FileRange, Path] = {}
    for member in artifact.members:
        if hard_links and member.source and _is_linked(member.source, root / member.path):
            continue
        _write_member(member, root / member.path, written)
        if member.kind is FileKind.DIRECTORY:
            (root / member.path).chmod(member.plain_mode)  # regardless of the umask


def _write_member(member: Member, path: Path, written: dict[FileRange, Path]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if member.link is not None:
        path.symlink_to(member.link)
    elif member.source is None:
        path.mkdir(exist_ok=True)
    elif member.source.size and member.source in written:
        path.hardlink_to(written[member.source])
    else:
        written[member.source] = path
        _write_file(member.source, member.plain_mode, path)


def _write_file(source: FileRange, mode: int, path: Path) -> None:
    with path.open("xb") as file:
        for start in range(0, source.size, _CHUNK):
            file.write(source.part(start, min(start + _CHUNK, source.size)).read())
        os.fchmod(file.fileno(), mode)


def _is_linked(source: FileRange, path: Path) -> bool:
    """Create a hard link to a file.

    Return whether the link was created and the file is unchanged since it was listed.
    """
    if source.stamp is None or source.offset or source.size != source.stamp.size:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.hardlink_to(source.path)
    except OSError as e:
        if e.errno in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP}:
            return False
        raise
    source.stamp.require(path.stat(), source.path)
    return True


def archive_artifacts(
    directory: Path,
    dest_dir: Path,
    names: Sequence[str],
    archive_format: ArchiveFormat,
    date: SourceDate,
    *,
    progress: Progress = SILENT,
) -> tuple[Path, ...]:
    """Write the artifacts in ``directory``, or only ``names``, as archives into ``dest_dir``, and return their paths.

    Existing archives are replaced. Raises `InputError` if ``dest_dir`` is ``directory``, and the same errors as
    `open_artifacts` and `write_archive`.
    """
    if dest_dir.resolve() == directory.resolve():
        remedy = "Choose another folder, because a folder may contain an artifact only once."
        raise InputError(dest_dir, "is the source folder of the artifacts", remedy=remedy)
    advance = serialized(progress.advance)

    def write(artifact: Artifact) -> Path:
        return write_archive(artifact, dest_dir, archive_format, date, advance=advance)

    with open_artifacts(directory, names, progress=progress) as artifacts:
        progress.begin("packing artifacts", sum(artifact.size for artifact in artifacts))
        try:
            return map_in_threads(write, artifacts, str(directory))
        finally:
            progress.end()


def extract_archives(archives: Sequence[Path], dest_dir: Path, *, progress: Progress = SILENT) -> tuple[Path, ...]:
    """Unpack ``archives`` to folders in ``dest_dir``, and return these folders, sorted by name.

    Before anything is written, raises `ProblemsError` if a path is not an artifact archive or its folder already
    exists. Unusable archives are reported together after all other archives are unpacked.
    """
    found = find_artifact_archives(archives)
    problems = [*found.problems, *(problem for item in found.artifacts if (problem := _occupied(dest_dir, item)))]
    raise_all(str(dest_dir), problems)
    advance = serialized(progress.advance)

    def extract(stored: StoredArtifact) -> Path:
        with open_artifact_archive(stored, advance=advance) as artifact:
            return extract_artifact(artifact, dest_dir)

    progress.begin("extracting archives", sum(item.packed_size for item in found.artifacts))
    try:
        return map_in_threads(extract, found.artifacts, str(dest_dir))
    finally:
        progress.end()


def _occupied(dest_dir: Path, stored: StoredArtifact) -> InputError | None:
    try:
        check_vacant(dest_dir, stored.name)
    except InputError as e:
        return e
    return None
