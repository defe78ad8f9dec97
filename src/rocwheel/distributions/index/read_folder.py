"""Reading the distributions of a folder, those alone that an earlier run has not read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from rocwheel.distributions.index.entry import read_entry
from rocwheel.distributions.index.known_files import KnownFile, is_settled
from rocwheel.foundation.errors import InputError, ProblemsError, RocwheelError
from rocwheel.foundation.workers import open_workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rocwheel.distributions.index.entry import IndexEntry
    from rocwheel.distributions.index.listing import Listing
    from rocwheel.foundation.files.file_stamp import FileStamp
    from rocwheel.foundation.progress import Progress

__all__ = ["Found", "read_folder"]


class Found(NamedTuple):
    """A distribution, known or just read."""

    known: KnownFile
    metadata: bytes | None = None
    """Its core metadata, if it was just read and has some to show."""


def read_folder(
    dist_dir: Path,
    listing: Listing,
    known: Mapping[str, KnownFile],
    progress: Progress,
    unread: list[RocwheelError] | None,
) -> dict[str, Found]:
    """Return the distributions by file name; raise `ProblemsError` with everything that is wrong with any.

    With a list ``unread``, what is wrong with single files is appended to it, and all others are returned, if there are
    any. What is wrong between two files is always raised.
    """
    stamps = listing.stamps
    found = {name: _still_known(known.get(name), stamps.get(name)) for name in listing.distributions}
    new = [dist_dir / name for name, one in found.items() if one is None]
    problems: list[RocwheelError] = []
    progress.begin("hashing", sum(stamps[path.name].size for path in new if path.name in stamps))
    with open_workers() as executor:
        for path, result in zip(new, executor.map(_try_reading, new), strict=True):
            if isinstance(result, RocwheelError):
                problems += result.problems if isinstance(result, ProblemsError) else [result]
            else:
                found[path.name] = result
                progress.advance(result.known.entry.size)
    progress.end()
    read = {name: one for name, one in found.items() if one is not None}
    doubles = _find_doubles(dist_dir, (one.known.entry for one in read.values()))
    if doubles or (problems and (unread is None or not read)):
        raise ProblemsError(str(dist_dir), [*problems, *doubles])
    if unread is not None:
        unread += problems
    return read


def _still_known(known: KnownFile | None, stamp: FileStamp | None) -> Found | None:
    return Found(known) if known and stamp and known.holds_for(stamp) else None


def _try_reading(path: Path) -> Found | RocwheelError:
    begun = time.time_ns()
    try:
        reading = read_entry(path)
    except RocwheelError as e:
        return e
    return Found(KnownFile(reading.entry, reading.stamp, is_settled(reading.stamp, begun)), reading.metadata)


def _find_doubles(dist_dir: Path, distributions: Iterable[IndexEntry]) -> list[RocwheelError]:
    problems: list[RocwheelError] = []
    seen: dict[tuple[str, str], str] = {}
    for found in distributions:
        first = seen.setdefault((found.project, found.identity), found.filename)
        if first != found.filename:
            what = f"the same distribution as {first} under another name"
            problems.append(InputError(dist_dir / found.filename, what, remedy="Remove one of the two."))
    return problems
