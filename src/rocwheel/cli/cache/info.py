"""``rocwheel cache info``: where the cache is, and what is in it."""

from __future__ import annotations

import os
from datetime import datetime, timezone

import msgspec
from rich.filesize import decimal

from rocwheel.cli.cache.group import cache_app
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.core.cache import Unreadable, packed_cache, read_contents
from rocwheel.core.cache_folders import fetched_cache, list_folders, published_cache
from rocwheel.core.messages import count

__all__ = ["info"]


class _Info(msgspec.Struct, frozen=True):
    folder: str
    entries: int
    bytes: int
    limit: int
    oldest_use: str | None = None
    newest_use: str | None = None
    fetched_folder: str = ""
    fetched: int = 0
    fetched_bytes: int = 0
    published_folder: str = ""
    published: int = 0
    published_bytes: int = 0
    unreadable: tuple[Unreadable, ...] = ()


@cache_app.command()
def info(*, json: JsonOption = False, quiet: QuietOption = False, verbose: VerboseOption = False) -> None:
    """Print where the cache is, how much is in it, and how much there may be.

    What commands have fetched from URLs of folders is there, too, and what publish notes of the files of folders.

    Example: rocwheel cache info
    """
    setup_logging(quiet=quiet, verbose=verbose)
    found = _read()
    if json:
        print_json("cache-info", 1, found)
        return
    print_line(found.folder)
    print_line(f"{count(found.entries, 'entry', 'entries')}, {decimal(found.bytes)} of at most {decimal(found.limit)}")
    if found.oldest_use:
        print_line(f"used between {found.oldest_use} and {found.newest_use}")
    for one in found.unreadable:
        print_line(f"{one.path}: can't be read ({one.reason}), and is not counted")
    if found.fetched:
        print_line(found.fetched_folder)
        print_line(f"{count(found.fetched, 'folder')} fetched from URLs, {decimal(found.fetched_bytes)}")
    if found.published:
        print_line(found.published_folder)
        print_line(f"notes of {count(found.published, 'published folder')}, {decimal(found.published_bytes)}")


def _read() -> _Info:
    place = packed_cache(os.environ)
    contents = read_contents(place.folder)
    entries = contents.entries
    total = sum(entry.size for entry in entries)
    oldest, newest = (_time(entries[0].used), _time(entries[-1].used)) if entries else (None, None)
    packed = _Info(str(place.folder), len(entries), total, place.limit, oldest, newest)
    fetched, published = list_folders(fetched_cache()), list_folders(published_cache())
    return msgspec.structs.replace(
        packed,
        fetched_folder=str(fetched_cache()),
        fetched=len(fetched),
        fetched_bytes=sum(one.size for one in fetched),
        published_folder=str(published_cache()),
        published=len(published),
        published_bytes=sum(one.size for one in published),
        unreadable=contents.unreadable,
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
