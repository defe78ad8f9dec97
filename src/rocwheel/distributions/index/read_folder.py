"""Reading the distributions of a folder, those alone that an earlier run has not read."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from rocwheel.distributions.index.entry import read_entry
from rocwheel.distributions.index.known_files import KnownFile, is_settled
from rocwheel.foundation.errors import InputError, ProblemsError, RocwheelError
from rocwheel.foundation.files.file_stamp import FileStamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rocwheel.distributions.index.entry import IndexEntry
    from rocwheel.foundation.progress import Progress

__all__ = ["Found", "read_folder"]


class Found(NamedTuple):
    """A distribution, known or just read."""

    known: KnownFile
    metadata: bytes | None = None
    """Its core metadata, if it was just read and has some to show."""


def read_folder(
    dist_dir: Path,
    names: Iterable[str],
    known: Mapping[str, KnownFile],
    progress: Progress,
    unread: list[RocwheelError] | None,
) -> dict[str, Found]:
    """Return the distributions by file name; raise `ProblemsError` with everything that is wrong with any.

    With a list ``unread``, what is wrong with single files is appended to it, and all others are returned, if there are
    any. What is wrong between two files is always raised.
    """
    found = {name: _still_known(dist_dir / name, known.get(name)) for name in names}
    new = [dist_dir / name for name, one in found.items() if one is None]
    problems: list[RocwheelError] = []
    progress.begin("hashing", sum(map(_find_size, new)))
    with ThreadPoolExecutor() as executor:
        for path, result in zip(new, executor.map(_try_reading, new), strict=True):
            if isinstance(result, RocwheelError):
                problems.append(result)
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


def _still_known(path: Path, known: KnownFile | None) -> Found | None:
    with suppress(OSError):
        if known and known.holds_for(FileStamp.of(path.stat())):
            return Found(known)
    return None


def _try_reading(path: Path) -> Found | RocwheelError:
    begun = time.time_ns()
    try:
        reading = read_entry(path)
    except RocwheelError as e:
        return e
    return Found(KnownFile(reading.entry, reading.stamp, is_settled(reading.stamp, begun)), reading.metadata)


def _find_size(path: Path) -> int:
    # The reader reports a link to nothing, with all other problems.
    return path.stat().st_size if path.exists() else 0


def _find_doubles(dist_dir: Path, distributions: Iterable[IndexEntry]) -> list[RocwheelError]:
    problems: list[RocwheelError] = []
    seen: dict[tuple[str, str], str] = {}
    for found in distributions:
        first = seen.setdefault((found.project, found.identity), found.filename)
        if first != found.filename:
            what = f"the same distribution as {first} under another name"
            problems.append(InputError(dist_dir / found.filename, what, remedy="Remove one of the two."))
    return problems
