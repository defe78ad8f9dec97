"""Reading the distributions of folders, those alone that an earlier run has not read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.core.errors import InputError, ProblemsError, RocwheelError, read_error
from rocwheel.core.reading import ChangedFileError, FileStamp, is_settled
from rocwheel.core.workers import Readers, Told, open_workers
from rocwheel.distributions.index.entries.entry import read_entry
from rocwheel.distributions.index.notes.found import Found
from rocwheel.distributions.index.notes.known_files import KnownFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rocwheel.core.progress import Progress
    from rocwheel.distributions.index.entries.entry import IndexEntry
    from rocwheel.distributions.index.placing.place_files import Places
    from rocwheel.distributions.index.reading.listing import Listing

__all__ = ["Listed", "Source", "folder_names", "read_folders", "unite"]


class Source(NamedTuple):
    """A folder of distributions."""

    places: Places
    """Where its files go."""
    listing: Listing
    prefix: str
    """What leads from the output to the folder, ending in a slash."""


class Listed(NamedTuple):
    """A distribution that an index lists."""

    key: str
    """What leads from the output to it."""
    found: Found
    places: Places

    @property
    def known(self) -> KnownFile:
        """What is known of it."""
        return self.found.known


class _New(NamedTuple):
    key: str
    path: Path
    stamp: FileStamp | None
    """As it was listed; none for what could not be asked then."""

    @property
    def size(self) -> int:
        """In bytes, as it was listed."""
        return self.stamp.size if self.stamp else 0


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
    problems = _read_new(new, found, memory, _Reading(progress, readers))
    read = {key: one for key, one in found.items() if one is not None}
    doubles = _find_doubles(sources, read)
    if doubles or (problems and (unread is None or not read)):
        raise ProblemsError(folder_names([source.places.dist_dir for source in sources]), [*problems, *doubles])
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
            path = source.places.dist_dir / name
            found[key] = _remembered(memory, path, stamp)
            if found[key] is None:
                new.append(_New(key, path, stamp))
    return found, new


class _Reading(NamedTuple):
    """How files are read."""

    progress: Progress
    readers: Readers | None

    def read(self, new: Sequence[_New]) -> Iterator[Found | RocwheelError]:
        """Yield the distributions, or what is wrong with them, in their order."""
        if self.readers is not None:
            begun = time.time_ns()
            stamps = {one.path: one.stamp for one in new}
            found = self.readers.map(_try_reading, [one.path for one in new], lambda path: _tell(path, stamps[path]))
            yield from (_as_here(one, result, begun) for one, result in zip(new, found, strict=True))
            return
        with open_workers() as executor:
            yield from executor.map(_try_reading, (one.path for one in new))


def _tell(path: Path, listed: FileStamp | None) -> Told:
    return Told(str(path), _same_stamp(path, listed).size, str(path))


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


def _read_new(
    new: Sequence[_New], found: dict[str, Found | None], memory: dict[Path, Found], reading: _Reading
) -> list[RocwheelError]:
    """Read files, put them into ``found`` and ``memory``, and return what is wrong with them."""
    problems: list[RocwheelError] = []
    reading.progress.begin("hashing", sum(one.size for one in new))
    for one, result in zip(new, reading.read(new), strict=True):
        if isinstance(result, RocwheelError):
            problems += result.problems if isinstance(result, ProblemsError) else [result]
        else:
            found[one.key] = memory[one.path] = result
            reading.progress.advance(result.known.entry.size)
    reading.progress.end()
    return problems


def folder_names(folders: Sequence[Path]) -> str:
    """Return the paths of the folders of one index, for messages about files that may be in any of them."""
    return ", ".join(map(str, folders))


def _remembered(memory: Mapping[Path, Found], path: Path, stamp: FileStamp | None) -> Found | None:
    """Return what this process has read before at that path, unless it has changed since."""
    found = memory.get(path)
    return found if found and found.known.stamp == stamp else None


def _try_reading(path: Path) -> Found | RocwheelError:
    begun = time.time_ns()
    try:
        reading = read_entry(path)
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
                listed[name] = Listed(key, found, source.places)
    return listed


def _find_doubles(sources: Sequence[Source], read: Mapping[str, Found]) -> list[RocwheelError]:
    """Return what is wrong between files: one name for different bytes, two names for one distribution."""
    problems: list[RocwheelError] = []
    seen: dict[tuple[str, str], tuple[IndexEntry, Path]] = {}
    for source in sources:
        for name in source.listing.distributions:
            if (one := read.get(f"{source.prefix}{name}")) is None:
                continue
            entry, folder = one.known.entry, source.places.dist_dir
            first, place = seen.setdefault((entry.project, entry.identity), (entry, folder))
            if first.filename != name:
                what = f"the same distribution as {first.filename} under another name"
                problems.append(InputError(folder / name, what, remedy="Remove one of the two."))
            elif first.sha256 != entry.sha256:
                what = f"has other bytes than {place / name}"
                remedy = "Remove one of the two, or make an index of each folder."
                problems.append(InputError(folder / name, what, expected="the same file", remedy=remedy))
    return problems
