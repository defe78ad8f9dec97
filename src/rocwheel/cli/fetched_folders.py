"""Folders at URLs that commands take where they take folders of artifacts or packages: fetched into a cache first."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec
from rich.filesize import decimal

from rocwheel.artifacts.fetching.choose import PACKAGED_COMPONENTS, find_archives
from rocwheel.artifacts.fetching.fetch import fetch_files, read_checksums_of
from rocwheel.cli.brought_urls import URL_OPTIONS
from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.progress import make_progress
from rocwheel.distributions.index.entries.entry import is_distribution_name
from rocwheel.foundation.counting import count
from rocwheel.foundation.errors import InputError, write_error
from rocwheel.foundation.files.cache_folder import cache_folder
from rocwheel.foundation.files.part_file import is_part
from rocwheel.foundation.files.stand_ins import show_as
from rocwheel.stores.open_store import open_store
from rocwheel.stores.urls import is_url, parse_url, shown_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rocwheel.stores.store import StoredFile

__all__ = ["fetch_folders"]


class _Taker(msgspec.Struct, frozen=True):
    """Where a command takes URLs of folders, and what of these it needs."""

    choose: Callable[[Iterable[StoredFile], str], list[StoredFile]]
    options: tuple[str, ...] = ()
    """The options that take one."""
    has_arguments: bool = True
    """Whether the arguments take one."""
    is_shown: bool = False
    """Whether results name the URL, not the folder that its files were fetched to."""


def _archives(files: Iterable[StoredFile], place: str) -> list[StoredFile]:
    return [archive.stored for archive in find_archives(files, place)]


def _packaged(files: Iterable[StoredFile], place: str) -> list[StoredFile]:
    found = find_archives(files, place)
    return [archive.stored for archive in found if archive.name.component in PACKAGED_COMPONENTS]


def _distributions(files: Iterable[StoredFile], place: str) -> list[StoredFile]:
    found = [stored for stored in files if "/" not in stored.name and is_distribution_name(stored.name)]
    if not found:
        raise InputError(place, "holds no wheels or sdists", remedy="Is it the right folder?")
    return found


def _sdists(files: Iterable[StoredFile], place: str) -> list[StoredFile]:
    """Return what may be a selector: one lies in the folder of a build, in its dist, or in a family's folder there."""
    found = [stored for stored in files if stored.name.endswith(".tar.gz") and stored.name.count("/") <= _DEEPEST]
    if not found:
        raise InputError(place, "holds no sdists", remedy="Is it the folder of a build?")
    return found


_DEEPEST = 2
"""Folders that ``dist/FAMILY/rocm-VERSION.tar.gz`` lies in."""
_TAKERS = {
    ("build",): _Taker(_packaged, ("--artifact-dir",), has_arguments=False),
    ("plan",): _Taker(_packaged, ("--artifact-dir",), has_arguments=False),
    ("artifacts", "list"): _Taker(_archives),
    ("artifacts", "archive"): _Taker(_archives),
    ("index",): _Taker(_distributions),
    ("audit",): _Taker(_distributions, ("--with",), is_shown=True),
    ("selector", "merge"): _Taker(_sdists),
}
_OTHERS = frozenset(
    {
        ("artifacts", "fetch"),
        ("index", "mirror"),
        ("index", "yank"),
        ("index", "unyank"),
        ("inspect",),
        ("device", "list"),
        ("lock",),
        ("publish",),
    }
)
"""Commands that know by themselves what to do with URLs."""
_FILE_SUFFIXES = (".whl", ".tar.gz")


def fetch_folders(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with a path in place of each URL of a folder.

    What the command needs of it is fetched into a folder of the cache, verified like `rocwheel artifacts fetch` does,
    and taken from there by the next command if it is still the same. Raises `InputError` where a command takes no URL.
    """
    command = next((tuple(words[:size]) for size in (2, 1) if tuple(words[:size]) in {*_TAKERS, *_OTHERS}), ())
    end = words.index("--") if "--" in words else len(words)
    if command in _OTHERS or not any("://" in word for word in words[:end]):
        return list(words)
    taker = _TAKERS.get(command)
    is_quiet = bool({"--quiet", "-q"} & {*words})
    brought = [_bring(words, place, taker, is_quiet=is_quiet) for place in range(end)]
    return [*brought, *words[end:]]


def _bring(words: Sequence[str], place: int, taker: _Taker | None, *, is_quiet: bool) -> str:
    """Return the word at a place, or what takes the place of its URL."""
    word, before = words[place], words[place - 1] if place else ""
    option, equals, value = word.partition("=")
    if taker and before in taker.options and is_url(word) and not word.endswith(_FILE_SUFFIXES):
        return _fetch(word, taker, is_quiet=is_quiet)
    if taker and option in taker.options and equals and is_url(value) and not value.endswith(_FILE_SUFFIXES):
        return f"{option}={_fetch(value, taker, is_quiet=is_quiet)}"
    if not is_url(word) or before in URL_OPTIONS:
        return word
    if taker is None or not taker.has_arguments:
        remedy = "Bring its files first, such as by `rocwheel artifacts fetch`, and name the folder."
        raise InputError(shown_url(word), "is a URL, which this command doesn't take there", remedy=remedy)
    if word.endswith(_FILE_SUFFIXES):
        return word
    if words[0] == "index":
        _require_copies(words, word)
    return _fetch(word, taker, is_quiet=is_quiet)


def _require_copies(words: Sequence[str], url: str) -> None:
    text = " ".join(words).replace("=", " ")
    if "--files copy" not in text or not ({"-o", "--output"} & {*text.split()}):
        found = "is a URL, whose files an index can only have copies of"
        raise InputError(shown_url(url), found, remedy="Add --files copy --output DIR; `index mirror` copies an index.")


def _fetch(url: str, taker: _Taker, *, is_quiet: bool) -> str:
    scheme, _, path = parse_url(url)
    if scheme == "file":
        return f"/{unquote(path)}"
    store = open_store(url)
    files = tuple(store.list())
    wanted = [stored if stored.size >= 0 else store.head(stored.name) for stored in taker.choose(files, store.url)]
    folder = _cache_folder(url)
    _make_folders(folder, wanted)
    progress = make_progress(quiet=is_quiet)
    fetch_files(store, wanted, folder, read_checksums_of(store, files, wanted), progress=progress)
    _remove_others(folder, {stored.name for stored in wanted})
    if not is_quiet:
        size = decimal(sum(stored.size for stored in wanted))
        messages.print(f"{store.url}: fetched to {folder}: {count(len(wanted), 'file')}, {size}", markup=False)
    if taker.is_shown:
        show_as(folder, store.url)
    return str(folder)


def _cache_folder(url: str) -> Path:
    """Return where the files of a URL are kept: the next command finds them there."""
    return Path(cache_folder(), "fetched", hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:16], "dist")


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
