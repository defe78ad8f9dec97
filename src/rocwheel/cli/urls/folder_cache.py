"""Folders at URLs, whose files are fetched into a cache: the next command finds there what has not changed."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec
from rich.filesize import decimal

from rocwheel.artifacts.fetching import fetch_files, read_checksums, with_sizes
from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.progress import make_progress
from rocwheel.core.cache_folders import claim, fetched_cache
from rocwheel.core.errors import InputError, write_error
from rocwheel.core.messages import count
from rocwheel.core.part_file import is_part
from rocwheel.core.remote_placeholders import show_as
from rocwheel.stores.open import open_store
from rocwheel.stores.urls import parse_url
from rocwheel.wheels.names import is_distribution_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rocwheel.stores.store import StoredFile

__all__ = ["Selection", "distributions_in", "fetch_folder"]


class Selection(msgspec.Struct, frozen=True):
    """What commands need of a folder."""

    name: str
    """Tells it from other selections: each is kept in a folder of its own."""
    choose: Callable[[Iterable[StoredFile], str], list[StoredFile]]
    """Returns the files that are needed of all; raises `InputError` without any, with the place that is its second."""


def distributions_in(files: Iterable[StoredFile], place: str, *, depth: int = 0) -> list[StoredFile]:
    """Return the wheels and sdists among files, at most ``depth`` folders deep; raise `InputError` without any."""
    names = [(stored, stored.name.split("/")) for stored in files]
    found = [stored for stored, parts in names if len(parts) <= depth + 1 and is_distribution_name(parts[-1])]
    if not found:
        raise InputError(place, "holds no wheels or sdists", remedy="Is it the right folder?")
    return found


def fetch_folder(
    url: str,
    selection: Selection,
    *,
    is_quiet: bool,
    is_shown: bool = False,
) -> str:
    """Return the path of a folder with the files of the URL that are chosen; that of a file:// URL is its own.

    They are verified as `rocwheel artifacts fetch` does it. With ``is_shown``, results name the URL, not the path.
    """
    scheme, _, path = parse_url(url)
    if scheme == "file":
        return f"/{unquote(path)}"
    store = open_store(url)
    files = tuple(store.list())
    wanted = with_sizes(store, selection.choose(files, store.url))
    folder = claim(_cache_folder(url, selection)) / "dist"
    _make_folders(folder, wanted)
    progress = make_progress(quiet=is_quiet)
    fetch_files(store, wanted, folder, read_checksums(store, files, wanted), progress=progress)
    _remove_others(folder, {stored.name for stored in wanted})
    if not is_quiet:
        size = decimal(sum(stored.size for stored in wanted))
        messages.print(f"{store.url}: fetched to {folder}: {count(len(wanted), 'file')}, {size}", markup=False)
    if is_shown:
        show_as(folder, store.url)
    return str(folder)


def _cache_folder(url: str, selection: Selection) -> Path:
    """Return where what commands with the same needs take from a URL is kept: the next one finds it there."""
    key = f"{url.rstrip('/')} {selection.name}"
    return Path(fetched_cache(), hashlib.sha256(key.encode()).hexdigest()[:16])


def _make_folders(folder: Path, wanted: Iterable[StoredFile]) -> None:
    try:
        for parent in {(folder / stored.name).parent for stored in wanted}:
            parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise write_error(folder, e) from e


def _remove_others(folder: Path, wanted: set[str]) -> None:
    """Remove what an earlier command has fetched and the store has no more, or this command doesn't need."""
    for path in folder.rglob("*"):
        if path.relative_to(folder).as_posix() not in wanted and not is_part(path.name) and not path.is_dir():
            with suppress(OSError):
                path.unlink()
