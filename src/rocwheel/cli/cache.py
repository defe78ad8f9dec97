"""``rocwheel cache``: shows and prunes the cache of packed files."""

from __future__ import annotations

import os
from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated

import click
import msgspec
from rich.filesize import decimal

from rocwheel.cli.app import Group, app
from rocwheel.cli.options import Output
from rocwheel.cli.output import print_json, print_line, printing_errors
from rocwheel.cli.parameters import option
from rocwheel.core.cache import (
    LIMIT_VARIABLE,
    Trouble,
    VerifiedEntries,
    packed_cache,
    parse_size,
    prune_entries,
    read_contents,
    verify_entries,
)
from rocwheel.core.cache_folders import fetched_cache, list_folders, prune_folders, published_cache
from rocwheel.core.errors import ProblemsError, WorkError
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.core.cache import Pruned


cache_app = Group("cache", help="Show, verify, and shrink the caches.")
app.add_command(cache_app)


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
    unreadable: tuple[Trouble, ...] = ()


@cache_app.command()
def info(
    verify: Annotated[
        bool, option("--verify", help="Read the whole cache, remove damaged entries, and fail if there were any.")
    ] = False,
    *,
    out: Output,
) -> None:
    """Print the locations and sizes of the caches.

    The caches contain packed files, folders that were fetched from URLs, and notes about published folders.

    With --verify, the exit status is 1 if an entry is damaged or can't be read. Builds also detect damage when they
    read an entry, and then repack the file.

    Example: rocwheel cache info
    """
    if verify:
        _verify(out)
        return
    found = _read()
    if out.json:
        print_json("cache-info", 1, found)
        return
    print_line(found.folder)
    print_line(f"{count(found.entries, 'entry', 'entries')}, {decimal(found.bytes)} of at most {decimal(found.limit)}")
    if found.oldest_use:
        print_line(f"used between {found.oldest_use} and {found.newest_use}")
    for one in found.unreadable:
        print_line(f"{one.path}: can't be read ({one.reason}), so it isn't counted")
    if found.fetched:
        print_line(found.fetched_folder)
        print_line(f"{count(found.fetched, 'folder')} fetched from URLs, {decimal(found.fetched_bytes)}")
    if found.published:
        print_line(found.published_folder)
        print_line(f"notes for {count(found.published, 'published folder')}, {decimal(found.published_bytes)}")


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


_OPTION = "--max-size"
_NAMES = {
    "fetched": ("fetched folder", "fetched folders"),
    "published": ("folder of publishing notes", "folders of publishing notes"),
}


@cache_app.command()
def prune(
    *,
    max_size: Annotated[
        str | None,
        option(
            _OPTION,
            metavar="SIZE",
            help="Shrink each cache to this size, such as 2GB. 0 removes everything.",
            show_default=f"${LIMIT_VARIABLE}, or 10GB",
        ),
    ] = None,
    out: Output,
) -> None:
    """Remove the least recently used entries from the caches.

    The limit applies to packed files, to fetched folders, and to publishing notes. The command also removes files left
    behind by killed builds, and keeps folders that are in use. If a running build needs a removed file, it packs the
    file again. The exit status is 1 if an entry can't be removed or read.

    Example: rocwheel cache prune --max-size 2GB
    """
    place = packed_cache(os.environ)
    limit = place.limit if max_size is None else parse_size(max_size, source=_OPTION)
    done = prune_entries(place.folder, limit)
    folders = {
        "fetched": prune_folders(fetched_cache(), limit),
        "published": prune_folders(published_cache(), limit, needs_lock=False),
    }
    if out.json:
        more = {f"{kind}_{name}": value for kind, one in folders.items() for name, value in _values(one).items()}
        print_json("cache-prune", 1, {"folder": str(place.folder), **msgspec.to_builtins(done), **more})
    elif not out.quiet:
        _print_pruned(done, "entry", "entries")
        for kind, one in folders.items():
            if one.removed or one.left:
                _print_pruned(one, *_NAMES[kind])
    if problems := list(_problems(place.folder, done)):
        raise problems[0] if len(problems) == 1 else ProblemsError(str(place.folder), problems)


def _values(done: Pruned) -> dict[str, int]:
    names = ("removed", "removed_bytes", "left", "left_bytes")
    return {name: getattr(done, name) for name in names}


def _print_pruned(done: Pruned, one: str, several: str) -> None:
    removed = f"removed {count(done.removed, one, several)} ({decimal(done.removed_bytes)})"
    print_line(f"{removed}; left: {done.left} ({decimal(done.left_bytes)})")


def _problems(folder: Path, done: Pruned) -> Iterator[WorkError]:
    """Yield the failures. If many entries have the same reason, yield the reason only once."""
    for reason, number in Counter(one.reason for one in done.not_removed).items():
        first = next(one.path for one in done.not_removed if one.reason == reason)
        found = f"{count(number, 'entry', 'entries')} can't be removed ({reason}), such as {first}"
        yield WorkError(folder, found, remedy="Check the contents and permissions, and whether the disk is writable.")
    for one in done.unreadable:
        yield WorkError(one.path, f"can't be read ({one.reason})", remedy="Check the permissions.")


def _verify(out: Output) -> None:
    place = packed_cache(os.environ)
    found = verify_entries(place.folder, out.progress)
    if out.json:
        print_json("cache-verify", 1, {"folder": str(place.folder), **msgspec.to_builtins(found)})
    else:
        with printing_errors():
            _print_found(found, quiet=out.quiet)
    if found.damaged or found.unreadable:
        raise click.exceptions.Exit(1)


def _print_found(found: VerifiedEntries, *, quiet: bool) -> None:
    for path in found.damaged:
        what = "is damaged and can't be removed" if path in found.not_removed else "was damaged and was removed"
        print_line(f"{path}: {what}")
    for one in found.unreadable:
        print_line(f"{one.path}: can't be read ({one.reason}), so it was kept")
    if not quiet:
        entries = count(found.entries, "entry", "entries")
        unread = f", {len(found.unreadable)} unreadable" if found.unreadable else ""
        print_line(f"{entries} ({decimal(found.bytes)}), {len(found.damaged)} damaged{unread}")
