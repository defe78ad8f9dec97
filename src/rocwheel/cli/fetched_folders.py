"""Folders at URLs that commands take where they take folders of artifacts or packages: fetched into a cache first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.fetching.choose import PACKAGED_COMPONENTS, find_archives
from rocwheel.cli.brought_urls import URL_OPTIONS
from rocwheel.cli.folder_cache import Selection, distributions_in, fetch_folder
from rocwheel.foundation.errors import InputError
from rocwheel.stores.urls import is_url, shown_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.stores.store import StoredFile

__all__ = ["fetch_folders"]


class _Taker(msgspec.Struct, frozen=True):
    """Where a command takes URLs of folders, and what of these it needs."""

    selection: Selection
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


def _sdists(files: Iterable[StoredFile], place: str) -> list[StoredFile]:
    """Return what may be a selector: one lies in the folder of a build, in its dist, or in a family's folder there."""
    found = [stored for stored in files if stored.name.endswith(".tar.gz") and stored.name.count("/") <= _DEEPEST]
    if not found:
        raise InputError(place, "holds no sdists", remedy="Is it the folder of a build?")
    return found


_DEEPEST = 2
"""Folders that ``dist/FAMILY/rocm-VERSION.tar.gz`` lies in."""
_PACKAGED = Selection("packaged artifacts", _packaged)
_ARTIFACTS = Selection("artifacts", _archives)
_DISTRIBUTIONS = Selection("distributions", distributions_in)
_TAKERS = {
    ("build",): _Taker(_PACKAGED, ("--artifact-dir",), has_arguments=False),
    ("plan",): _Taker(_PACKAGED, ("--artifact-dir",), has_arguments=False),
    ("artifacts", "list"): _Taker(_ARTIFACTS),
    ("artifacts", "archive"): _Taker(_ARTIFACTS),
    ("index",): _Taker(_DISTRIBUTIONS),
    ("audit",): _Taker(_DISTRIBUTIONS, ("--with",), is_shown=True),
    ("artifacts", "merge"): _Taker(_ARTIFACTS, ("--primary",)),
    ("promote",): _Taker(_DISTRIBUTIONS),
    ("selector", "merge"): _Taker(Selection("sdists", _sdists)),
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
_OUTPUTS = frozenset({"--output", "-o", "--dest-dir", "-d", "--sarif", "--baseline"})
_FILE_SUFFIXES = (".whl", ".tar.gz")


def fetch_folders(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with a path in place of each URL of a folder.

    What the command needs of it is fetched into a folder of the cache, verified like `rocwheel artifacts fetch` does,
    and taken from there by the next command if it is still the same. Raises `InputError` where a command takes no URL.
    """
    _refuse_outputs(words)
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
    if not is_url(word) or before in URL_OPTIONS | _OUTPUTS:
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
    return fetch_folder(url, taker.selection, is_quiet=is_quiet, is_shown=taker.is_shown)


def _refuse_outputs(words: Sequence[str]) -> None:
    """Raise `InputError` for a URL that a command would have to write to."""
    if words[0] == "publish" or tuple(words[:2]) in {("index", "yank"), ("index", "unyank")}:
        return
    if words[0] == "build" and any(word.startswith("--scheduler") for word in words):
        return  # the workers of a cluster write to stores
    for before, word in zip(["", *words], words, strict=False):
        option, _, value = word.partition("=")
        url = word if before in _OUTPUTS else value if option in _OUTPUTS else ""
        if is_url(url):
            remedy = "Name a folder; then `rocwheel publish` puts distributions and their index on a store."
            raise InputError(shown_url(url), "is a URL, which this command can't write to", remedy=remedy)
