"""The fetching of one file of an index: verified, taken up where it ended, and never over other bytes."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from rocwheel.core.errors import WorkError, read_error
from rocwheel.core.hashing import hash_file
from rocwheel.core.part_file import Expected, receive
from rocwheel.core.reading import FileStamp
from rocwheel.distributions.index.pages.upload_times import to_microseconds
from rocwheel.distributions.index_reading.source import stream_file
from rocwheel.stores.urls import shown_url

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rocwheel.distributions.index.notes.known_files import KnownFile
    from rocwheel.distributions.index_reading.trust import ListedFile

__all__ = ["fetch_file"]


def fetch_file(
    folder: Path,
    file: ListedFile,
    *,
    known: KnownFile | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> bool:
    """Bring a file into ``folder`` unless it stands there with the right hash; return whether it did not.

    ``known`` is what an earlier run has noted of it. Raises `WorkError` where other bytes have its name, as installers
    may have locked them; and as `receive` does.
    """
    path, modified = folder / file.filename, _nanoseconds(file.upload_time)
    if _is_present(path, file, known):
        advance(file.size or 0)
        _set_time(path, modified)
        return False
    expected = Expected(source=shown_url(file.url), size=file.size, sha256=file.sha256, modified=modified)
    receive(path, expected, partial(stream_file, file), advance)
    return True


def _is_present(path: Path, file: ListedFile, known: KnownFile | None) -> bool:
    try:
        stamp = FileStamp.of(path.stat())
    except FileNotFoundError:
        return False
    except OSError as e:
        raise read_error(path, e) from e
    try:
        found = known.entry.sha256 if known and known.holds_for(stamp) else hash_file(path)
    except OSError as e:
        raise read_error(path, e) from e
    if found != file.sha256:
        text = f"is there with the SHA-256 {found}, not that of {shown_url(file.url)}"
        raise WorkError(path, text, expected=file.sha256, remedy="Remove it, or mirror into another folder.")
    return True


def _nanoseconds(upload_time: str | None) -> int | None:
    """Return the date of an upload, which the index lists again; a malformed one is nobody's loss."""
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat((upload_time or "").replace("Z", "+00:00"))
        if moment.tzinfo is not None:
            return to_microseconds(moment) * 1000
    return None


def _set_time(path: Path, modified: int | None) -> None:
    """Give a file that is there already the date of its upload, which the page may have changed."""
    with suppress(OSError, OverflowError):  # somebody else's file keeps its own
        if modified is not None and path.stat().st_mtime_ns != modified:
            os.utime(path, ns=(modified, modified))
