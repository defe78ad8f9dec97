"""Finds and opens artifacts as folders or archives, and reports all problems together."""

from __future__ import annotations

import logging
import os
import stat
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.archives import decompress, peek, read_artifact_archive
from rocwheel.artifacts.artifact import (
    ANY_EXECUTE,
    ARCHIVE_SUFFIXES,
    MANIFEST_NAME,
    MAX_MANIFEST_SIZE,
    PERMISSIONS,
    Artifact,
    ArtifactName,
    FileKind,
    Member,
    checked,
    looks_like_artifact,
    parse_stages,
)
from rocwheel.core.errors import InputError, RocwheelError, read_error
from rocwheel.core.messages import find_below
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileRange, FileStamp, have_same_bytes
from rocwheel.core.workers import map_collecting, map_in_threads, serialized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


logger = logging.getLogger(__name__)

_OTHER_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.lz4", ".zip")


class StoredArtifact(msgspec.Struct, frozen=True, order=True):
    """An artifact in a folder of artifacts, before it is read."""

    name: ArtifactName
    path: str
    is_archive: bool

    @property
    def packed_size(self) -> int:
        """The size of an archive in bytes. For a folder, or if the size can't be read, it is 0."""
        try:
            return Path(self.path).stat().st_size if self.is_archive else 0
        except OSError:
            return 0


class Discovery(msgspec.Struct, frozen=True):
    """The artifacts in a folder, and the problems with other entries."""

    artifacts: tuple[StoredArtifact, ...]
    """The artifacts, sorted by name, without duplicates."""
    problems: tuple[RocwheelError, ...]
    """Errors about entries that only look like artifacts: invalid names, unsupported formats, and duplicate names."""


def find_artifacts(directory: Path) -> Discovery:
    """Return the artifact folders and archives in ``directory``, sorted by name.

    Skips hidden names and anything that doesn't look like an artifact. Raises `InputError` if ``directory`` can't be
    read or contains nothing that looks like an artifact.
    """
    discovery = _sort_out(_candidates(directory), directory)
    if not discovery.artifacts and not discovery.problems:
        expected = "folders, or .tar.xz or .tar.zst archives, named {name}_{component}_{target}"
        raise InputError(directory, "does not contain any artifacts", expected=expected, remedy=_advice(directory))
    return discovery


def _advice(directory: Path) -> str:
    """Return advice about a folder without artifacts, based on its contents."""
    if any(directory.glob("*.whl")):
        return "The folder contains wheels. Specify the artifacts that they were built from."
    below = find_below(directory, lambda path: looks_like_artifact(archive_stem(path) or path.name))
    return f"There are artifacts in {below}." if below else "Check the path."


def find_artifact_archives(paths: Iterable[Path]) -> Discovery:
    """Return the artifact archives at these paths, with a problem for each path that is not an artifact archive."""
    return _sort_out(paths, "archives", folders=False)


def _sort_out(paths: Iterable[Path], subject: object, *, folders: bool = True) -> Discovery:
    found: dict[ArtifactName, list[StoredArtifact]] = {}
    problems: list[RocwheelError] = []
    for path in paths:
        artifact = _stored(path, is_archive=not (folders and path.is_dir()))
        if isinstance(artifact, InputError):
            problems.append(artifact)
        else:
            found.setdefault(artifact.name, []).append(artifact)
    problems += [_repeated(subject, same) for same in found.values() if len(same) > 1]
    return Discovery(tuple(sorted(same[0] for same in found.values() if len(same) == 1)), tuple(problems))


def archive_stem(path: Path) -> str | None:
    """Return the name of an archive without its suffix, or `None` if it has no suffix from `ARCHIVE_SUFFIXES`."""
    return next((path.name.removesuffix(suffix) for suffix in ARCHIVE_SUFFIXES if path.name.endswith(suffix)), None)


def _candidates(directory: Path) -> Iterator[Path]:
    try:
        paths = sorted(directory.iterdir())
    except OSError as e:
        raise read_error(directory, e, expected="a folder of artifacts") from e
    found = [path for path in paths if not path.name.startswith(".") and _is_candidate(path)]
    # A folder without artifacts is not an error here, because the audit checks whether any folder has artifacts.
    for path in sorted({*paths} - {*found}) if found else ():
        logger.debug("ignoring %s, which does not look like an artifact", path)
    yield from found


def _is_candidate(path: Path) -> bool:
    if path.is_dir():
        return looks_like_artifact(path.name) or (path / MANIFEST_NAME).is_file()
    stem = archive_stem(path)
    if stem is not None:
        return looks_like_artifact(stem) or peek(path, len(MANIFEST_NAME)) == MANIFEST_NAME.encode()
    suffixes = (suffix for suffix in _OTHER_SUFFIXES if path.name.endswith(suffix))
    return any(looks_like_artifact(path.name.removesuffix(suffix)) for suffix in suffixes)


def _stored(path: Path, *, is_archive: bool) -> StoredArtifact | InputError:
    stem = archive_stem(path) if is_archive else path.name
    if stem is None:
        remedy = (
            "Specify the archives in the folder."
            if path.is_dir()
            else "Unpack the archive to a folder, or compress it with xz or zstd."
        )
        found, expected = "is not a readable artifact archive", " or ".join(ARCHIVE_SUFFIXES)
        return InputError(path, found, expected=expected, remedy=remedy)
    try:
        return StoredArtifact(ArtifactName.parse(stem, path), str(path), is_archive)
    except InputError as e:
        return e


def _repeated(subject: object, artifacts: list[StoredArtifact]) -> InputError:
    names = " and ".join(Path(artifact.path).name for artifact in artifacts)
    return InputError(
        str(subject), f"contains the same artifact several times: {names}", remedy="Keep only one of them."
    )


def read_artifact_folder(folder: Path, name: ArtifactName) -> Artifact:
    """Read the manifest of an artifact folder, and list the folder's members in path order.

    Raises `InputError` or `ProblemsError` if the manifest is missing, unreadable, or malformed, and for each member
    that can't be read, is a device, FIFO, or socket, or is unsafe (see `checked`).
    """
    stages = parse_stages(_read_manifest(folder), str(folder / MANIFEST_NAME))
    problems: list[RocwheelError] = []
    return checked(Artifact(name, str(folder), stages, walk_tree(folder, problems)), problems)


def walk_tree(root: Path, problems: list[RocwheelError]) -> tuple[Member, ...]:
    """Return all members below ``root`` in path order, with symlinks as members. Errors are added to ``problems``."""
    folders = [""]
    found: list[Member] = []
    while folders:
        members = list(_scan(root, folders.pop(), problems))
        found += members
        folders += [member.path for member in members if member.kind is FileKind.DIRECTORY]
    return tuple(sorted(found, key=lambda member: member.path))


def _scan(root: Path, folder: str, problems: list[RocwheelError]) -> Iterator[Member]:
    place = root / folder
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                try:
                    yield _member(entry, path)
                except OSError as e:
                    problems.append(read_error(entry.path, e))
                except InputError as e:
                    problems.append(e)
    except OSError as e:
        problems.append(read_error(str(place), e))


def _member(entry: os.DirEntry[str], path: str) -> Member:
    status = entry.stat(follow_symlinks=False)
    mode = status.st_mode & PERMISSIONS
    if stat.S_ISDIR(status.st_mode):
        return Member(path, FileKind.DIRECTORY, mode)
    if stat.S_ISLNK(status.st_mode):
        link = os.readlink(entry.path)  # noqa: PTH115 (a Path would change the text: "./x/" to "x")
        return Member(path, FileKind.SYMLINK, PERMISSIONS, link=link)
    if stat.S_ISREG(status.st_mode):
        if not os.access(entry.path, os.R_OK):
            raise InputError(entry.path, "can't be read", remedy="Check the permissions.")
        return Member(path, FileKind.FILE, mode, source=FileRange(entry.path, 0, status.st_size, FileStamp.of(status)))
    raise InputError(entry.path, "is a device, FIFO, or socket", expected="only files, symlinks, and folders")


def _read_manifest(folder: Path) -> bytes:
    path = folder / MANIFEST_NAME
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(path, "is not a regular file", expected="a list of stage folders")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_MANIFEST_SIZE + 1)
    except FileNotFoundError as e:
        remedy = "If a copy of the artifact was interrupted, complete or remove the folder."
        raise InputError(folder, f"has no {MANIFEST_NAME}", remedy=remedy) from e
    except OSError as e:
        raise read_error(str(path), e) from e
    if len(data) > MAX_MANIFEST_SIZE:
        raise InputError(path, f"is larger than {MAX_MANIFEST_SIZE} bytes", expected="a manifest with a few lines")
    return data


@contextmanager
def open_artifacts(
    directory: Path,
    names: Sequence[str] = (),
    *,
    progress: Progress = SILENT,
    unread: list[RocwheelError] | None = None,
) -> Iterator[tuple[Artifact, ...]]:
    """Read the artifacts in ``directory``, or only ``names``, sorted by name.

    Folders are listed. Each archive is decompressed once into an unnamed temporary file that exists until the block
    ends. Raises `ProblemsError` with everything that looks like an artifact but can't be used, and with every name that
    doesn't exist. Raises `InputError` if the folder can't be read, and `WorkError` if the temporary folder is full.
    With a list ``unread``, these problems are appended to the list instead, and the other artifacts are returned.
    """
    found = find_artifacts(directory)
    if names:
        found = _select(directory, found, names)
    with ExitStack() as stack:
        yield _read_all(str(directory), found, stack, progress, unread)


@contextmanager
def open_artifact_archive(archive: StoredArtifact, *, advance: Callable[[int], None]) -> Iterator[Artifact]:
    """Read one archive like `open_artifacts`. ``advance`` is called with the number of bytes read."""
    with ExitStack() as stack:
        yield _read(archive, stack, advance)


def _select(directory: Path, found: Discovery, names: Sequence[str]) -> Discovery:
    artifacts = tuple(artifact for artifact in found.artifacts if str(artifact.name) in names)
    missing = sorted(set(names) - {str(artifact.name) for artifact in artifacts})
    absent = [InputError(directory, f"does not contain the artifact {name}") for name in missing]
    return Discovery(artifacts, (*found.problems, *absent))


def _read_all(
    subject: str, found: Discovery, stack: ExitStack, progress: Progress, unread: list[RocwheelError] | None
) -> tuple[Artifact, ...]:
    advance = serialized(progress.advance)

    def read(stored: StoredArtifact) -> Artifact:
        return _read(stored, stack, advance)

    packed_size = sum(artifact.packed_size for artifact in found.artifacts)
    progress.begin("reading artifacts", packed_size)
    try:
        return map_in_threads(read, found.artifacts, subject, found.problems, unread)
    finally:
        progress.end()


def _read(stored: StoredArtifact, stack: ExitStack, advance: Callable[[int], None]) -> Artifact:
    path = Path(stored.path)
    if not stored.is_archive:
        return read_artifact_folder(path, stored.name)
    spool = decompress(path, advance=advance)
    stack.enter_context(spool)
    return read_artifact_archive(path, stored.name, spool)


def unite_artifacts(subject: str, folders: Iterable[tuple[Artifact, ...]]) -> tuple[Artifact, ...]:
    """Return the artifacts of several folders, sorted by name.

    If several folders contain the same artifact, the first folder is used. Raises `InputError` with both locations if
    the copies differ in their stage folders, file bytes, or executable bits, or `ProblemsError` about ``subject`` for
    several errors.
    """
    by_name: dict[str, list[Artifact]] = {}
    for artifact in (artifact for artifacts in folders for artifact in artifacts):
        by_name.setdefault(str(artifact.name), []).append(artifact)
    return tuple(map_collecting(subject, _first_of_same, (by_name[name] for name in sorted(by_name))))


def _first_of_same(copies: list[Artifact]) -> Artifact:
    first, *others = copies
    for other in others:
        if other.location != first.location and (difference := _difference(first, other)):
            found = f"is a different artifact from {other.location}: they differ in {difference}"
            remedy = "Remove one of the artifacts, or omit one of the folders."
            raise InputError(first.location, found, remedy=remedy)
    return first


def _difference(one: Artifact, other: Artifact) -> str:
    """Return the relevant difference between two artifacts with the same name, or an empty string."""
    if sorted(one.stages) != sorted(other.stages):
        return "the stage folders"
    # Folders don't count, because archives may omit them.
    mine, theirs = (
        {member.path: member for member in artifact.members if member.kind is not FileKind.DIRECTORY}
        for artifact in (one, other)
    )
    paths = sorted(mine.keys() | theirs.keys())
    return next((path for path in paths if not _is_same(mine.get(path), theirs.get(path))), "")


def _is_same(one: Member | None, other: Member | None) -> bool:
    if one is None or other is None or (one.kind, one.link) != (other.kind, other.link):
        return False
    if one.source is None or other.source is None:
        return True
    if bool(one.mode & ANY_EXECUTE) != bool(other.mode & ANY_EXECUTE):
        return False
    with one.source.view() as mine, other.source.view() as theirs:
        return have_same_bytes(mine, theirs)
