"""Lists the distributions in folders, and reads the distributions that no earlier run has read."""

from __future__ import annotations

import os
import time
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.core.errors import InputError, ProblemsError, RocwheelError, is_fault, read_error
from rocwheel.core.names import is_utf8
from rocwheel.core.progress import SILENT
from rocwheel.core.reading import ChangedFileError, FileStamp, is_settled
from rocwheel.core.workers import ReadContext, Readers, open_workers, raise_all, serialized
from rocwheel.index.entry import read_entry
from rocwheel.index.folder_notes import OWN_NAMES, Found, KnownFile
from rocwheel.index.pages import METADATA_SUFFIX, PAGES
from rocwheel.wheels.build_manifest import BUILT_FOLDER
from rocwheel.wheels.file_names import DISTRIBUTION_SUFFIXES, is_distribution_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rocwheel.core.progress import Progress
    from rocwheel.index.entry import IndexEntry
    from rocwheel.index.placing import Placer


class Listing(msgspec.Struct, frozen=True):
    """The sorted names in a folder."""

    distributions: tuple[str, ...]
    stamps: dict[str, FileStamp]
    """The stamps of the readable distributions. For a symlink, the stamp of its target."""
    beside: dict[str, FileStamp]
    """The stamps of the core metadata next to distributions, keyed by distribution name. Symlinks are not followed."""
    ignored: tuple[str, ...]
    """Files that are not wheels, sdists, or parts of an index, and folders with the name of a distribution."""
    subfolders: tuple[str, ...]
    """Subfolders that contain distributions at any depth, except hidden folders and folders of other indexes."""
    hidden: tuple[str, ...] = ()
    """Files and folders whose names start with a dot."""

    def without(self, names: Collection[str]) -> Listing:
        """Return the listing without these distributions."""
        if not names:
            return self
        kept = tuple(name for name in self.distributions if name not in names)
        return msgspec.structs.replace(self, distributions=kept)


def list_folder(dist_dir: Path, output: Path, *, may_be_empty: bool = False) -> Listing:
    """Return the contents of ``dist_dir``. ``output`` and folders with index pages don't count as subfolders.

    Raises `InputError` for a folder that can't be listed, and for a folder without distributions unless
    ``may_be_empty`` is true. Raises the same error for the folder of a build or mirror, because its `BUILT_FOLDER`
    should be specified instead.
    """
    try:
        listing, folders = _look(dist_dir)
        below = [name for name in folders if _is_subfolder(dist_dir / name, output)]
    except OSError as e:
        remedy = "Specify the folder that contains the wheels and sdists."
        raise InputError(dist_dir, f"can't be listed ({e.strerror})", remedy=remedy) from e
    if not listing.distributions and (below == [BUILT_FOLDER] or not may_be_empty):
        found, expected = "does not contain any distributions", "*.whl or *.tar.gz files"
        raise InputError(dist_dir, found, expected=expected, remedy=_advice(below))
    misnamed = {name for name in folders if _is_distribution(name)} - {*below}
    ignored = tuple(sorted(misnamed.union(listing.ignored)))
    return msgspec.structs.replace(listing, ignored=ignored, subfolders=tuple(below))


def _advice(folders: list[str]) -> str:
    """Return advice for a folder without distributions, based on its subfolders that have distributions."""
    if folders == [BUILT_FOLDER]:  # the folder of a build or a mirror, not of a GPU family
        return f"Specify its subfolder {BUILT_FOLDER}, which contains distributions."
    return f"Index its subfolders separately: {', '.join(folders)}." if folders else ""


def _look(dist_dir: Path) -> tuple[Listing, list[str]]:
    """Return the files and all subfolders of a folder. Raise `OSError` if the folder can't be listed."""
    # Use the descriptor and only one query per entry, because a folder may have many thousands of entries.
    descriptor = os.open(dist_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found: list[os.DirEntry[str]] = []
        others: list[os.DirEntry[str]] = []
        folders: list[str] = []
        for entry in os.scandir(descriptor):
            if entry.is_dir():
                folders.append(entry.name)
            else:
                (found if _is_distribution(entry.name) else others).append(entry)
        found.sort(key=attrgetter("name"))
        stamps = dict(_stamps(found))
        names = tuple(entry.name for entry in found)
        beside = dict(_metadata_stamps(others, names))
    finally:
        os.close(descriptor)
    rest = [entry.name for entry in others]
    ignored = sorted(name for name in rest if not (name.endswith(METADATA_SUFFIX) or name in OWN_NAMES))
    hidden = sorted(name for name in (*folders, *rest) if name.startswith("."))
    return Listing(names, stamps, beside, tuple(ignored), (), tuple(hidden)), sorted(folders)


def find_families(dist_dir: Path, output: Path) -> tuple[str, ...]:
    """Return the subfolders in a `Listing` that contain distributions themselves.

    The result is empty if the folder can't be listed. It is also empty if the index is among the distributions, because
    then there is no suitable location for family indexes. Raises `InputError` if the disk fails.
    """
    try:
        if dist_dir.resolve() == output.resolve():
            return ()
        names = sorted(entry.name for entry in os.scandir(dist_dir) if entry.is_dir())
    except OSError as e:
        if is_fault(e):
            raise read_error(dist_dir, e) from e
        return ()
    folders = [name for name in names if _is_subfolder(dist_dir / name, output)]
    return tuple(name for name in folders if list_names(dist_dir / name))


def require_addresses(source: str, folders: Mapping[Path, str]) -> None:
    """Raise `InputError`, or `ProblemsError` for several folders, if a folder's path can't be in a URL."""
    why, remedy = "has a name that is not UTF-8 and can't be in a URL", "Rename it."
    unnamed = [folder for folder, path in folders.items() if not is_utf8(path)]
    raise_all(source, [InputError(folder, why, remedy=remedy) for folder in unnamed])


def list_names(folder: Path) -> list[str]:
    """Return the distribution names in a folder, or an empty list if the folder can't be listed.

    Raises `InputError` if the disk fails.
    """
    try:
        return [entry.name for entry in os.scandir(folder) if is_distribution_name(entry.name) and not entry.is_dir()]
    except OSError as e:
        if is_fault(e):
            raise read_error(folder, e) from e
        return []


def _stamps(entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[str, FileStamp]]:
    for entry in entries:
        try:
            status = entry.stat()
        except OSError:  # the file is gone, or is a broken symlink: reading it reports the problem
            continue
        yield entry.name, FileStamp.of(status)


def _metadata_stamps(
    entries: Iterable[os.DirEntry[str]], distributions: Iterable[str]
) -> Iterator[tuple[str, FileStamp]]:
    wanted = {f"{name}{METADATA_SUFFIX}": name for name in distributions}
    for entry in entries:
        if name := wanted.get(entry.name):
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:  # gone
                continue
            yield name, FileStamp.of(status)


def _is_distribution(name: str) -> bool:
    return name.endswith(DISTRIBUTION_SUFFIXES) and not name.startswith(".")


def _is_subfolder(folder: Path, output: Path) -> bool:
    if folder.name.startswith(".") or folder.parent.resolve().is_relative_to(folder.resolve()):
        return False  # the folder is hidden, or is a symlink to this folder
    return any(is_distribution_name(name) for names in _names_outside_of_indexes(folder, output) for name in names)


def _names_outside_of_indexes(folder: Path, output: Path) -> Iterator[list[str]]:
    for place, folders, names in os.walk(folder):
        if PAGES[1] in names or Path(place).resolve() == output.resolve():
            folders.clear()
        else:
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield names


class Source(NamedTuple):
    """A folder of distributions."""

    placer: Placer
    """The placer for the folder's files."""
    listing: Listing
    prefix: str
    """The relative path from the output to the folder, which ends with a slash."""


class Listed(NamedTuple):
    """A distribution that an index lists."""

    key: str
    """The relative path from the output to the distribution."""
    found: Found
    placer: Placer

    @property
    def known(self) -> KnownFile:
        """The recorded information about the distribution."""
        return self.found.known


class _New(NamedTuple):
    key: str
    path: Path
    stamp: FileStamp | None
    """The stamp when the folder was listed, or `None` if it was not available."""


def read_folders(
    sources: Sequence[Source],
    known: Mapping[str, KnownFile],
    progress: Progress,
    unread: list[RocwheelError] | None,
    memory: dict[Path, Found],
    readers: Readers | None = None,
) -> dict[str, Found]:
    """Return the distributions, keyed by their path relative to the output, as in ``known``.

    Raises `ProblemsError` with all problems. If ``unread`` is a list, the problems are appended to it instead, and the
    other distributions are returned. ``memory`` contains the distributions that this process has read, keyed by path,
    and is updated. ``readers`` read the files; the default is threads of this process.
    """
    found, new = _find_known(sources, known, memory)
    problems: list[RocwheelError] = []
    progress.begin("hashing", sum(one.stamp.size if one.stamp else 0 for one in new))
    advance = serialized(progress.advance)
    for one, result in zip(new, _read_each(new, readers, advance), strict=True):
        if isinstance(result, RocwheelError):
            problems += result.problems if isinstance(result, ProblemsError) else [result]
        else:
            found[one.key] = memory[one.path] = result
            advance(result.known.entry.size if readers else 0)
    progress.end()
    read = {key: one for key, one in found.items() if one is not None}
    doubles = _find_doubles(sources, read)
    if doubles or (problems and (unread is None or not read)):
        raise ProblemsError(folder_names([source.placer.dist_dir for source in sources]), [*problems, *doubles])
    if unread is not None:
        unread += problems
    return read


def _find_known(
    sources: Sequence[Source], known: Mapping[str, KnownFile], memory: Mapping[Path, Found]
) -> tuple[dict[str, Found | None], list[_New]]:
    """Return the known distributions, keyed by path (`None` for unread files), and the distributions to read."""
    found: dict[str, Found | None] = {}
    new: list[_New] = []
    for source in sources:
        stamps, prefix = source.listing.stamps, source.prefix
        for name in source.listing.distributions:
            key, stamp = f"{prefix}{name}", stamps.get(name)
            if (noted := known.get(key)) and stamp and noted.holds_for(stamp):
                found[key] = Found(noted)
                continue
            path = source.placer.dist_dir / name
            before = memory.get(path)  # this process has already read the file, if it is unchanged
            found[key] = before if before and before.known.stamp == stamp else None
            if found[key] is None:
                new.append(_New(key, path, stamp))
    return found, new


def _read_each(
    new: Sequence[_New], readers: Readers | None, advance: Callable[[int], None]
) -> Iterator[Found | RocwheelError]:
    """Yield each distribution, or the error about it, in order.

    Threads of this process report their progress within a file. ``readers`` don't report progress.
    """
    if readers is None:
        with open_workers() as executor:
            yield from executor.map(partial(_try_reading, advance=advance), (one.path for one in new))
        return
    begun = time.time_ns()
    stamps = {one.path: one.stamp for one in new}

    def tell(path: Path) -> ReadContext:
        return ReadContext(str(path), _same_stamp(path, stamps[path]).size, str(path))

    found = readers.map(_try_reading, [one.path for one in new], tell)
    yield from (_as_here(one, result, begun) for one, result in zip(new, found, strict=True))


def _same_stamp(path: Path, listed: FileStamp | None) -> FileStamp:
    """Return the file's stamp on this machine. Raise `ChangedFileError` if it differs from the listed stamp.

    For files that other machines read, only the size and time are compared, and a writer can restore them.
    """
    try:
        status = path.stat()
    except OSError as e:
        raise read_error(path, e) from e
    if listed is not None:
        listed.require(status, str(path))
    return FileStamp.of(status)


def _as_here(new: _New, result: Found | RocwheelError, begun: int) -> Found | RocwheelError:
    """Return another machine's result with the file's stamp on this machine, which later runs compare.

    Whether the stamp is settled depends on ``begun``, the time when this machine began, in nanoseconds since 1970.
    """
    if isinstance(result, RocwheelError):
        return result
    try:
        stamp = _same_stamp(new.path, new.stamp)
    except RocwheelError as e:
        return e
    if stamp.for_any_machine() != result.known.stamp.for_any_machine():
        return ChangedFileError(str(new.path), "changed while it was being read")
    is_sure = result.known.is_settled and is_settled(stamp, begun)
    return Found(msgspec.structs.replace(result.known, stamp=stamp, is_settled=is_sure), result.metadata)


def folder_names(folders: Sequence[Path]) -> str:
    """Return the paths of an index's folders, for messages about files that may be in any of them."""
    return ", ".join(map(str, folders))


def _try_reading(path: Path, advance: Callable[[int], object] = SILENT.advance) -> Found | RocwheelError:
    begun = time.time_ns()
    try:
        reading = read_entry(path, advance)
    except RocwheelError as e:
        return e
    return Found(KnownFile(reading.entry, reading.stamp, is_settled(reading.stamp, begun)), reading.metadata)


def unite(sources: Sequence[Source], read: Mapping[str, Found]) -> dict[str, Listed]:
    """Return the distributions of an index, keyed by file name.

    If several folders contain a file with the same name, the file in the first folder is used.
    """
    listed: dict[str, Listed] = {}
    for source in sources:
        for name in source.listing.distributions:
            key = f"{source.prefix}{name}"
            if name not in listed and (found := read.get(key)):
                listed[name] = Listed(key, found, source.placer)
    return listed


def _find_doubles(sources: Sequence[Source], read: Mapping[str, Found]) -> list[RocwheelError]:
    """Return the conflicts between files: one name with different bytes, or two names for the same distribution."""
    problems: list[RocwheelError] = []
    seen: dict[tuple[str, str], tuple[IndexEntry, Path]] = {}
    for source in sources:
        for name in source.listing.distributions:
            if (one := read.get(f"{source.prefix}{name}")) is None:
                continue
            entry, folder = one.known.entry, source.placer.dist_dir
            first, place = seen.setdefault((entry.project, entry.identity), (entry, folder))
            if first.filename != name:
                what = f"is the same distribution as {first.filename}, under a different file name"
                problems.append(InputError(folder / name, what, remedy="Remove one of the two files."))
            elif first.sha256 != entry.sha256:
                what = f"differs from {place / name}"
                remedy = "Remove one of the two files, or index each folder separately."
                problems.append(InputError(folder / name, what, expected="the same bytes", remedy=remedy))
    return problems
