"""The distributions in folders: listed by name, and read unless an earlier run has read them."""

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
    """The names in a folder, sorted."""

    distributions: tuple[str, ...]
    stamps: dict[str, FileStamp]
    """Of the distributions, links followed; those alone that can be had."""
    beside: dict[str, FileStamp]
    """Of the core metadata that stand beside distributions, by the name of the distribution; links not followed."""
    ignored: tuple[str, ...]
    """What is neither a wheel nor an sdist: folders named like one, and files but those of an index."""
    subfolders: tuple[str, ...]
    """Folders in it that hold distributions, at any depth; without hidden folders and those of other indexes."""
    hidden: tuple[str, ...] = ()
    """Files and folders that begin with a dot."""

    def without(self, names: Collection[str]) -> Listing:
        """Return the listing without some distributions."""
        if not names:
            return self
        kept = tuple(name for name in self.distributions if name not in names)
        return msgspec.structs.replace(self, distributions=kept)


def list_folder(dist_dir: Path, output: Path, *, may_be_empty: bool = False) -> Listing:
    """Return what stands in ``dist_dir``; ``output`` is no subfolder, nor is a folder that has the pages of an index.

    Raises `InputError` for a folder that can't be listed, for one that holds no distributions itself unless it
    ``may_be_empty``, and for the folder of a build or a mirror in the place of its `BUILT_FOLDER`.
    """
    try:
        listing, folders = _look(dist_dir)
        below = [name for name in folders if _is_subfolder(dist_dir / name, output)]
    except OSError as e:
        remedy = "Give the folder that holds the wheels and sdists."
        raise InputError(dist_dir, f"can't be listed ({e.strerror})", remedy=remedy) from e
    if not listing.distributions and (below == [BUILT_FOLDER] or not may_be_empty):
        found, expected = "holds no distributions", "*.whl or *.tar.gz files"
        raise InputError(dist_dir, found, expected=expected, remedy=_advice(below))
    misnamed = {name for name in folders if _is_distribution(name)} - {*below}
    ignored = tuple(sorted(misnamed.union(listing.ignored)))
    return msgspec.structs.replace(listing, ignored=ignored, subfolders=tuple(below))


def _advice(folders: list[str]) -> str:
    """Return what they may have meant who name a folder without distributions, of the folders in it that have some."""
    if folders == [BUILT_FOLDER]:  # of a build or a mirror, which is no family of GPUs
        return f"Give {BUILT_FOLDER} in it, which has some."
    return f"Index its folders one by one: {', '.join(folders)}." if folders else ""


def _look(dist_dir: Path) -> tuple[Listing, list[str]]:
    """Return the files that stand in a folder, and all its folders; raise `OSError` when it can't be listed."""
    # By its descriptor, and each entry asked once: a folder may have many thousands.
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
    """Return the subfolders of a `Listing` that have distributions themselves; none where that may not be listed.

    Where the index stands among the distributions, there is no room for more of them. Raises `InputError` for a disk
    that fails.
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
    """Raise `InputError`, or `ProblemsError` for several, for folders to which what leads there can be no address."""
    why, remedy = "has a name that is not in UTF-8, which no address of an index can have", "Rename it."
    unnamed = [folder for folder, path in folders.items() if not is_utf8(path)]
    raise_all(source, [InputError(folder, why, remedy=remedy) for folder in unnamed])


def list_names(folder: Path) -> list[str]:
    """Return the names of what looks like distributions in a folder; none if it may not be listed.

    Raises `InputError` for a disk that fails.
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
        except OSError:  # gone, or a link to nothing: reading it tells
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
        return False  # hidden, or a link to where we are
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
    """Where its files go."""
    listing: Listing
    prefix: str
    """What leads from the output to the folder, ending in a slash."""


class Listed(NamedTuple):
    """A distribution that an index lists."""

    key: str
    """What leads from the output to it."""
    found: Found
    placer: Placer

    @property
    def known(self) -> KnownFile:
        """What is known of it."""
        return self.found.known


class _New(NamedTuple):
    key: str
    path: Path
    stamp: FileStamp | None
    """As it was listed; none for what could not be asked then."""


def read_folders(
    sources: Sequence[Source],
    known: Mapping[str, KnownFile],
    progress: Progress,
    unread: list[RocwheelError] | None,
    memory: dict[Path, Found],
    readers: Readers | None = None,
) -> dict[str, Found]:
    """Return the distributions by what leads from the output to them, as in ``known``.

    Raises `ProblemsError` with everything that is wrong with any; with a list ``unread``, what is wrong is appended to
    it, and all others are returned, if there are any. ``memory`` has what this process has read before, by path, and
    gets what it reads now. ``readers`` read, by default threads of this process.
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
    """Return, by key, what needs no reading, with None for all others; and the list of these others."""
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
            before = memory.get(path)  # what this process has read there, unless it has changed since
            found[key] = before if before and before.known.stamp == stamp else None
            if found[key] is None:
                new.append(_New(key, path, stamp))
    return found, new


def _read_each(
    new: Sequence[_New], readers: Readers | None, advance: Callable[[int], None]
) -> Iterator[Found | RocwheelError]:
    """Yield the distributions, or what is wrong with them, in their order.

    Threads of this process report each step of a file. ``readers`` don't.
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
    """Return the stamp that a file has on this machine; raise `ChangedFileError` if it was another when it was listed.

    Other machines see of it size and time alone, which whoever writes to it can set back.
    """
    try:
        status = path.stat()
    except OSError as e:
        raise read_error(path, e) from e
    if listed is not None:
        listed.require(status, str(path))
    return FileStamp.of(status)


def _as_here(new: _New, result: Found | RocwheelError, begun: int) -> Found | RocwheelError:
    """Return what another machine has read with the stamp of the file on this one, where a later run compares it.

    It is settled by the time at which this machine has ``begun``, in nanoseconds since 1970.
    """
    if isinstance(result, RocwheelError):
        return result
    try:
        stamp = _same_stamp(new.path, new.stamp)
    except RocwheelError as e:
        return e
    if stamp.for_any_machine() != result.known.stamp.for_any_machine():
        return ChangedFileError(str(new.path), "was written to while it was being read")
    is_sure = result.known.is_settled and is_settled(stamp, begun)
    return Found(msgspec.structs.replace(result.known, stamp=stamp, is_settled=is_sure), result.metadata)


def folder_names(folders: Sequence[Path]) -> str:
    """Return the paths of the folders of one index, for messages about files that may be in any of them."""
    return ", ".join(map(str, folders))


def _try_reading(path: Path, advance: Callable[[int], object] = id) -> Found | RocwheelError:
    begun = time.time_ns()
    try:
        reading = read_entry(path, advance)
    except RocwheelError as e:
        return e
    return Found(KnownFile(reading.entry, reading.stamp, is_settled(reading.stamp, begun)), reading.metadata)


def unite(sources: Sequence[Source], read: Mapping[str, Found]) -> dict[str, Listed]:
    """Return the distributions that an index lists, by file name: of one that several folders have, the first."""
    listed: dict[str, Listed] = {}
    for source in sources:
        for name in source.listing.distributions:
            key = f"{source.prefix}{name}"
            if name not in listed and (found := read.get(key)):
                listed[name] = Listed(key, found, source.placer)
    return listed


def _find_doubles(sources: Sequence[Source], read: Mapping[str, Found]) -> list[RocwheelError]:
    """Return what is wrong between files: one name for different bytes, two names for one distribution."""
    problems: list[RocwheelError] = []
    seen: dict[tuple[str, str], tuple[IndexEntry, Path]] = {}
    for source in sources:
        for name in source.listing.distributions:
            if (one := read.get(f"{source.prefix}{name}")) is None:
                continue
            entry, folder = one.known.entry, source.placer.dist_dir
            first, place = seen.setdefault((entry.project, entry.identity), (entry, folder))
            if first.filename != name:
                what = f"the same distribution as {first.filename} under another name"
                problems.append(InputError(folder / name, what, remedy="Remove one of the two."))
            elif first.sha256 != entry.sha256:
                what = f"has other bytes than {place / name}"
                remedy = "Remove one of the two, or make an index of each folder."
                problems.append(InputError(folder / name, what, expected="the same file", remedy=remedy))
    return problems
