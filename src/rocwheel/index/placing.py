"""Writes distributions, metadata, and pages into an index, and removes stale files."""

from __future__ import annotations

import enum
import hashlib
import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote

import msgspec
from packaging.utils import is_normalized_name

from rocwheel.core.errors import InputError, WorkError, read_error
from rocwheel.core.hashing import hash_file
from rocwheel.core.names import is_file_name
from rocwheel.core.reading import FileStamp, open_regular, open_unchanged, read_if_readable
from rocwheel.core.scratch import is_scratch, scratch_folder
from rocwheel.core.workers import raise_all
from rocwheel.core.writing import atomic_file
from rocwheel.index.entry import read_metadata
from rocwheel.index.folder_notes import KNOWN_NAME, LINKS_NAME, KnownProject, settled, write_changed
from rocwheel.index.pages import (
    METADATA_SUFFIX,
    PAGES,
    RawFile,
    decode_edited_page,
    decode_edited_root,
    is_project_page,
    is_root_page,
    make_digest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from rocwheel.core.errors import RocwheelError
    from rocwheel.index.entry import IndexEntry
    from rocwheel.index.folder_notes import Found, KnownFile
    from rocwheel.index.pages import Page


_PIECE = 1 << 20


class FilePlacement(enum.Enum):
    """The location of the files that an index lists."""

    RELATIVE = "relative"
    """In the folder of the distributions, which pages link to."""
    HARDLINK = "hardlink"
    """In the index, as hard links to the distributions."""
    COPY = "copy"
    """In the index, as copies of the distributions."""

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        parameter, names = "files", ", ".join(placement.value for placement in cls)
        raise InputError(parameter, f"is {value!r}", expected=f"one of {names}")


class Placer(msgspec.Struct, frozen=True, eq=False):
    """Places the files of an index. Thousands of files share the same placer, so placers are compared by identity."""

    dist_dir: Path
    output: Path
    placement: FilePlacement

    @property
    def holds_files(self) -> bool:
        """Whether the index contains the distributions themselves."""
        return self.placement is not FilePlacement.RELATIVE

    @property
    def base(self) -> str:
        """The relative path from a project's folder to the files, which is empty or ends with a slash."""
        if self.holds_files:
            return ""
        return f"{os.path.relpath(self.dist_dir.resolve(), self.output.resolve() / 'project')}/"

    def targets(self, known: KnownFile) -> list[Path]:
        """Return the paths that are written for a distribution: its copy and its metadata, if it has any."""
        return [Path(name) for name in self._target_names(known.entry)]

    def _target_names(self, entry: IndexEntry) -> list[str]:
        # These stay strings, because creating thousands of paths would take most of the time.
        folder = f"{self.output}/{entry.project}" if self.holds_files else str(self.dist_dir)
        copies = [f"{folder}/{entry.filename}"] if self.holds_files else []
        return copies + ([f"{folder}/{entry.filename}{METADATA_SUFFIX}"] if entry.metadata_sha256 is not None else [])

    def holds(self, known: KnownFile, beside: Mapping[str, FileStamp] | None = None) -> bool:
        """Return whether all files that an earlier run wrote for a distribution are unchanged.

        ``beside`` contains the stamps of the metadata in the folder of the distributions, keyed by name. Without
        ``beside``, the stamps are queried.
        """
        if known.placement != self.placement.value:
            return False
        entry = known.entry
        if beside is None or self.holds_files:
            return tuple(map(_stamp, self._target_names(entry))) == known.placed
        return known.placed == (() if entry.metadata_sha256 is None else (beside.get(entry.filename),))

    def place(self, found: Found) -> KnownFile:
        """Write the missing files, and return the updated record of the distribution.

        Raises `WorkError` if that fails, or if the distribution has changed since it was read.
        """
        if found.known.placed and self.holds(found.known):
            return found.known
        begun = time.time_ns()
        targets = self.targets(found.known)
        source = self.dist_dir / found.known.entry.filename
        # Use the current stamp: a link that a killed run created may be gone by now, which changes the stamp.
        stamp = _require(source, found.known.stamp)
        metadata = self._read_metadata(found, source, stamp, targets[-1]) if targets else None
        if self.holds_files:
            self._place_copy(source, targets[0], found.known.entry, stamp)
        if metadata is not None:
            try:
                write_changed(targets[-1], metadata)
            except WorkError as e:
                if self.holds_files:
                    raise
                remedy = "Make the folder writable, or put the files into the index with --files hardlink or copy."
                raise WorkError(e.source, e.found, remedy=remedy) from e
        # Only the hard link has changed the stamp, so the next run must not read the file again.
        stamp = _require(source, stamp)
        placed = settled((_stamp(target) for target in targets), begun)
        return msgspec.structs.replace(found.known, stamp=stamp, placed=placed, placement=self.placement.value)

    def _read_metadata(self, found: Found, source: Path, stamp: FileStamp, target: Path) -> bytes | None:
        """Return the core metadata with the hash that the pages list.

        Return `None` if the pages list no hash or the metadata file already exists.
        """
        wanted = found.known.entry.metadata_sha256
        if wanted is None or found.metadata is not None:
            return found.metadata
        if _has_hash(target, wanted):
            return None
        data = read_metadata(source)
        _require(source, stamp)
        if hashlib.sha256(data).hexdigest() != wanted:
            remedy = f"Remove {self.output / KNOWN_NAME}, and run the command again."
            raise WorkError(
                source, "has core metadata whose hash differs from the hash that an earlier run recorded", remedy=remedy
            )
        return data

    def _place_copy(self, source: Path, target: Path, entry: IndexEntry, stamp: FileStamp) -> None:
        if target.parent.exists() and target.parent.samefile(source.parent):
            return  # the folder of the distributions has the name of the project
        if self.placement is FilePlacement.HARDLINK:
            _hardlink(source, target, stamp)
        elif not _is_copy(source, target, entry):
            _copy(source, target, stamp)


def _require(source: Path, stamp: FileStamp) -> FileStamp:
    """Return the current stamp of a file. Raise `ChangedFileError` if the file has changed since it was read."""
    try:
        status = source.stat()
    except OSError as e:
        raise read_error(source, e, kind=WorkError) from e
    stamp.require(status, str(source))
    return FileStamp.of(status)


def _stamp(path: Path | str) -> FileStamp | None:
    try:
        return FileStamp.of(os.lstat(path))
    except OSError:
        return None


def _is_copy(source: Path, target: Path, entry: IndexEntry) -> bool:
    """Return whether a file is already a complete copy. Reading the file takes less time than writing it again."""
    try:
        is_other = target.stat().st_size == entry.size and not target.samefile(source)
    except OSError:
        return False
    return is_other and _has_hash(target, entry.sha256)


def _has_hash(path: Path, sha256: str) -> bool:
    try:
        return hash_file(path) == sha256
    except OSError:
        return False


def _copy(source: Path, target: Path, stamp: FileStamp) -> None:
    try:
        # In this order, the bytes are checked against the stamp before they get their name.
        with atomic_file(target) as writer, open_unchanged(source) as reader:
            stamp.require(os.fstat(reader.fileno()), str(source))
            while data := reader.read(_PIECE):
                writer.write(data)
    except OSError as e:
        raise read_error(source, e, kind=WorkError) from e


def _hardlink(source: Path, target: Path, stamp: FileStamp) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and target.samefile(source):
            return
        with scratch_folder(target) as folder:
            temporary = folder / target.name
            temporary.hardlink_to(source)
            stamp.require(temporary.stat(), str(source))
            temporary.replace(target)
    except OSError as e:
        remedy = "If the folders are on different file systems, use --files copy."
        raise WorkError(target, f"can't be a hard link to {source} ({e.strerror})", remedy=remedy) from e


def read_previous(
    output: Path, noted: Mapping[str, Iterable[str]], wanted: Mapping[str, AbstractSet[str]]
) -> dict[str, set[str]]:
    """Return the names of the files that earlier runs wrote to ``output``, keyed by project.

    The names come from the pages and from the ``noted`` names of the previous run. That run may have been killed before
    it wrote the root page or removed stale files. Projects with only ``wanted`` files are omitted.
    """
    is_own = is_root_page(read_if_readable(output / "index.html"))
    projects = {*noted, *(_listed_projects(output) if is_own else ())}
    kept = {name for name, names in noted.items() if name in wanted and wanted[name] >= set(names)}
    return {name: _written(output / name, noted.get(name, ())) for name in projects - kept if _is_own(output, name)}


def _is_own(output: Path, project: str) -> bool:
    folder = output / project
    if not (is_normalized_name(project) and is_file_name(project)) or folder.is_symlink():
        return False
    page = folder / "index.html"
    return is_project_page(read_if_readable(page)) if page.exists() else folder.is_dir()


def _written(folder: Path, noted: Iterable[str]) -> set[str]:
    files = _decode(folder / "index.json")
    held = [file.filename for file in files if file.url == quote(file.filename) and is_file_name(file.filename)]
    return {*PAGES, *held, *(f"{name}{METADATA_SUFFIX}" for name in held), *filter(is_file_name, noted)}


def _listed_projects(output: Path) -> tuple[str, ...]:
    try:
        return decode_edited_root(read_if_readable(output / "index.json"))
    except msgspec.DecodeError:
        return ()


def _decode(path: Path) -> tuple[RawFile, ...]:
    """Return the files that a JSON page lists, or an empty tuple for a damaged page."""
    with suppress(msgspec.DecodeError):
        return decode_edited_page(read_if_readable(path))
    return ()


def remove_stale(
    dist_dirs: Sequence[Path], output: Path, previous: Mapping[str, set[str]], wanted: Mapping[str, AbstractSet[str]]
) -> None:
    """Remove the ``previous`` files that are no longer ``wanted``, but never from the folders of distributions.

    Raises `WorkError` if that fails.
    """
    try:
        for project, names in sorted(previous.items()):
            folder = output / project
            if names <= wanted.get(project, set()):
                continue
            if folder.is_dir() and not any(map(folder.samefile, dist_dirs)):
                _remove(folder, names - wanted.get(project, set()))
    except OSError as e:
        raise WorkError(output, f"can't be cleaned up ({e.strerror})", remedy="Check its permissions.") from e


def _remove(folder: Path, names: set[str]) -> None:
    for name in sorted(names, key=lambda name: (name not in PAGES, name)):  # no page lists removed files
        (folder / name).unlink(missing_ok=True)
    if names.issuperset(PAGES):
        with suppress(OSError):  # the folder has other files
            folder.rmdir()


_REMEDY = "Choose a different --output, or remove the file."
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check_output(output: Path, dist_dir: Path, served: Path | None = None, *, holds_files: bool) -> None:
    """Raise `InputError` if an index of ``dist_dir`` can't be in ``output``, regardless of the contents of ``output``.

    ``holds_files`` means that the index will contain the distributions. Otherwise, the folder ``served`` must contain
    both the distributions and the index. By default, that folder is the parent folder of the index.
    """
    if os.path.lexists(output) and not output.is_dir():
        raise InputError(output, "is not a folder", remedy="Choose a folder for the index with --output.")
    if (output / LINKS_NAME).exists():
        raise InputError(output, "is an index of links", remedy="Choose another folder for the index with --output.")
    place = output.resolve()
    if holds_files and place == dist_dir.resolve():
        remedy = "Choose another folder with --output, or link to the files with --files relative."
        raise InputError(output, "already contains the distributions", remedy=remedy)
    if not holds_files and not dist_dir.resolve().is_relative_to(served.resolve() if served else place.parent):
        remedy = "Write the index next to the folder or above it, or use --files hardlink or --files copy."
        raise InputError(output, f"can't be served from the same folder as {dist_dir.resolve()}", remedy=remedy)


def check_targets(output: Path, projects: Iterable[str], files: Collection[Path], noted: Collection[str]) -> None:
    """Raise the problems with existing files at the paths of pages, project folders, and ``files``.

    The following paths are never replaced: a page from another program, a symlink to another folder, and anything that
    is not a file. A file in a folder without a page from this command is not replaced either, unless its project is
    ``noted``.
    """
    folders = [output / project for project in projects]
    problems = [*_folder_problems(folders), *_page_problems(output, is_root_page)]
    for folder in folders:
        problems += _page_problems(folder, is_project_page)
    jsons = [folder / PAGES[1] for folder in (output, *folders)]
    for path in (*files, *jsons):
        problems += _file_problems(path)
    unknown = {folder for folder in folders if folder.name not in noted} | ({output} if not noted else set())
    held = set(folders)
    for path in (*(path for path in files if path.parent in held), *jsons):  # these files have no records
        if path.parent in unknown and (path.is_symlink() or path.is_file()) and not (path.parent / PAGES[0]).exists():
            problems.append(InputError(path, "is a file that this command did not write", remedy=_REMEDY))
    raise_all(str(output), problems)


def _folder_problems(folders: Iterable[Path]) -> Iterator[RocwheelError]:
    for folder in folders:
        try:
            mode = folder.lstat().st_mode
        except OSError:  # the folder doesn't exist
            continue
        if stat.S_ISLNK(mode):
            found = f"is a link to {folder.readlink()}"
            yield InputError(folder, found, expected="a regular folder", remedy="Remove the link.")
        elif not stat.S_ISDIR(mode):
            yield InputError(folder, "is not a folder", remedy="Choose a different --output, or remove the file.")


def _page_problems(folder: Path, is_own: Callable[[bytes], bool]) -> Iterator[RocwheelError]:
    page = folder / PAGES[0]
    problem = next(_file_problems(page), None)
    if problem:
        yield problem
        return
    try:
        with open_regular(page) as file:
            known = is_own(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as e:
        yield read_error(page, e, remedy="Check its permissions.")
        return
    if not known:
        remedy = "Choose a different --output, or remove the page."
        yield InputError(page, "is a page that this command did not write for this path", remedy=remedy)


def _file_problems(path: Path) -> Iterator[RocwheelError]:
    try:
        mode = path.stat().st_mode
    except OSError:  # the file doesn't exist or is a broken symlink
        return
    if kind := _KINDS.get(stat.S_IFMT(mode)):
        yield InputError(path, f"is {kind}", expected="a regular file or nothing", remedy="Remove it.")


def write_page(folder: Path, page: Page, noted: KnownProject | None) -> list[str]:
    """Write both formats of a page, unless they are already up to date.

    Return the paths of pages whose bytes differed from the ``noted`` digests because someone edited them.
    """
    edited = []
    digests = noted.digests if noted and len(noted.digests) == len(PAGES) else ("", "")
    # The JSON page comes first, because the HTML page shows which program owns the folder.
    for name, data, digest in (("index.json", page.json, digests[1]), ("index.html", page.html, digests[0])):
        replaced = write_changed(folder / name, data)
        if digest and replaced is not None and make_digest(replaced) != digest:
            edited.append(str(folder / name))
    return edited


def note_root(output: Path, families: Iterable[str], digests: tuple[str, ...], written_at: int) -> KnownProject:
    """Return the record of the page that lists the projects and the ``families``. See `note_project`."""
    return KnownProject(tuple(families), settled(page_stamps(str(output)), written_at), digests)


def note_project(
    folder: Path, entries: Iterable[IndexEntry], digests: tuple[str, ...], written_at: int
) -> KnownProject:
    """Return the record of a project whose folder is complete and contains no stale files.

    ``written_at`` is the time at which writing the project's pages began, in nanoseconds since 1970.
    """
    # The unfinished files of a killed run may disappear without a change in the folder's stamp.
    is_at_work = any(is_scratch(path.name) for path in folder.iterdir())
    stamps = () if is_at_work else settled(page_stamps(str(folder), with_folder=True), written_at)
    return KnownProject(tuple(entry.filename for entry in entries), stamps, digests)


def page_stamps(folder: str, *, with_folder: bool = False) -> tuple[FileStamp, ...]:
    """Return the stamps of a folder's pages, optionally preceded by the folder's own stamp.

    Empty unless both pages exist.
    """
    of, lstat = FileStamp.of, os.lstat  # this function is called for thousands of folders
    html, json = PAGES
    try:
        pages = of(lstat(f"{folder}/{html}")), of(lstat(f"{folder}/{json}"))
        return (of(lstat(folder)), *pages) if with_folder else pages
    except OSError:
        return ()
