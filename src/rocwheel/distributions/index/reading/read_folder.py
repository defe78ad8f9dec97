"""Reading the distributions of folders, those alone that an earlier run has not read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from rocwheel.distributions.index.entries.entry import read_entry
from rocwheel.distributions.index.notes.found import Found
from rocwheel.distributions.index.notes.known_files import KnownFile, is_settled
from rocwheel.foundation.errors import InputError, ProblemsError, RocwheelError
from rocwheel.foundation.workers import open_workers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rocwheel.distributions.index.entries.entry import IndexEntry
    from rocwheel.distributions.index.placing.place_files import Places
    from rocwheel.distributions.index.reading.listing import Listing
    from rocwheel.foundation.files.file_stamp import FileStamp
    from rocwheel.foundation.progress import Progress

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


class _Given(NamedTuple):
    source: Source
    name: str

    @property
    def path(self) -> Path:
        return self.source.places.dist_dir / self.name

    @property
    def stamp(self) -> FileStamp | None:
        return self.source.listing.stamps.get(self.name)


def read_folders(
    sources: Sequence[Source],
    known: Mapping[str, KnownFile],
    progress: Progress,
    unread: list[RocwheelError] | None,
    memory: dict[Path, Found],
) -> dict[str, Found]:
    """Return the distributions by what leads from the output to them, as in ``known``.

    Raises `ProblemsError` with everything that is wrong with any; with a list ``unread``, what is wrong is appended to
    it, and all others are returned, if there are any. ``memory`` has what this process has read before, by path, and
    gets what it reads now.
    """
    given = {
        f"{source.prefix}{name}": _Given(source, name) for source in sources for name in source.listing.distributions
    }
    found = {key: _still_known(known.get(key), one.stamp) or _remembered(memory, one) for key, one in given.items()}
    new = [(key, one.path, one.stamp) for key, one in given.items() if found[key] is None]
    problems: list[RocwheelError] = []
    progress.begin("hashing", sum(stamp.size for _, _, stamp in new if stamp))
    with open_workers() as executor:
        for (key, path, _), result in zip(new, executor.map(_try_reading, (path for _, path, _ in new)), strict=True):
            if isinstance(result, RocwheelError):
                problems += result.problems if isinstance(result, ProblemsError) else [result]
            else:
                found[key] = memory[path] = result
                progress.advance(result.known.entry.size)
    progress.end()
    read = {key: one for key, one in found.items() if one is not None}
    doubles = _find_doubles(sources, read)
    if doubles or (problems and (unread is None or not read)):
        raise ProblemsError(folder_names(sources), [*problems, *doubles])
    if unread is not None:
        unread += problems
    return read


def folder_names(sources: Sequence[Source]) -> str:
    """Return the paths of the folders, for messages."""
    return ", ".join(str(source.places.dist_dir) for source in sources)


def _still_known(known: KnownFile | None, stamp: FileStamp | None) -> Found | None:
    return Found(known) if known and stamp and known.holds_for(stamp) else None


def _remembered(memory: Mapping[Path, Found], given: _Given) -> Found | None:
    """Return what this process has read before at that path, unless it has changed since."""
    if not memory or (found := memory.get(given.path)) is None or found.known.stamp != given.stamp:
        return None
    return found


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
