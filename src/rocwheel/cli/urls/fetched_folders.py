"""Folders at URLs that commands take where they take folders of artifacts or packages: fetched into a cache first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from rocwheel.cli.urls.folder_cache import fetch_folder
from rocwheel.cli.urls.takers import OTHER_URLS, find_taker
from rocwheel.core.errors import InputError
from rocwheel.stores.urls import is_url, shown_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.cli.urls.takers import Taker

_Fetch: TypeAlias = "Callable[[str, Taker], str]"
"""Returns what takes the place of the URL of a folder."""
__all__ = ["check_urls", "fetch_folders"]

_OUTPUTS = frozenset({"--output", "-o", "--dest-dir", "-d", "--sarif", "--baseline"})
_FILE_SUFFIXES = (".whl", ".tar.gz")
_REMEDY = (
    "Bring its files first, artifacts by `rocwheel artifacts fetch` and packages by `rocwheel index mirror`, and name "
    "the folder."
)
_REMEDIES = {"attest": "Bring its files first, the whole folder of the build with its manifest, and name that."}
"""By command; a mirror has no manifest."""


def fetch_folders(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with a path in place of each URL of a folder.

    What the command needs of it is fetched into a folder of the cache, verified like `rocwheel artifacts fetch` does,
    and taken from there by the next command if it is still the same. Raises as `check_urls` does.
    """
    is_quiet = bool({"--quiet", "-q"} & {*words})

    def fetch(url: str, taker: Taker) -> str:
        return fetch_folder(url, taker.folders, is_quiet=is_quiet, is_shown=taker.is_shown) if taker.folders else url

    return _replace(words, fetch)


def check_urls(words: Sequence[str]) -> bool:
    """Return whether a command may fetch folders; raise `InputError` where it takes no URL. Nothing is fetched yet.

    Others read files by range, and ask for little before they look at their options.
    """
    _replace(words, lambda url, _: url)
    taker = find_taker(words)
    return taker is not None and taker.folders is not None


def _replace(words: Sequence[str], fetch: _Fetch) -> list[str]:
    taker = find_taker(words)
    _refuse_outputs(words, taker)
    end = words.index("--") if "--" in words else len(words)
    if (taker and not taker.folders) or not any("://" in word for word in words[:end]):
        return list(words)
    brought = [_bring(words, place, taker, fetch) for place in range(end)]
    return [*brought, *words[end:]]


def _bring(words: Sequence[str], place: int, taker: Taker | None, fetch: _Fetch) -> str:
    """Return the word at a place, or what takes the place of its URL."""
    word, before = words[place], words[place - 1] if place else ""
    option, equals, value = word.partition("=")
    if taker and before in taker.options and is_url(word) and not word.endswith(_FILE_SUFFIXES):
        return fetch(word, taker)
    if taker and option in taker.options and equals and is_url(value) and not value.endswith(_FILE_SUFFIXES):
        return f"{option}={fetch(value, taker)}"
    if not is_url(word) or before in OTHER_URLS | _OUTPUTS:
        return word
    if not (taker and taker.has_arguments):
        remedy = _REMEDIES.get(words[0], _REMEDY)
        raise InputError(shown_url(word), "is a URL, which this command doesn't take there", remedy=remedy)
    if word.endswith(_FILE_SUFFIXES):
        return word
    if taker.needs_copies:
        _require_copies(words, word)
    return fetch(word, taker)


def _require_copies(words: Sequence[str], url: str) -> None:
    text = " ".join(words).replace("=", " ")
    if "--files copy" not in text or not ({"-o", "--output"} & {*text.split()}):
        found = "is a URL, whose files an index can only have copies of"
        raise InputError(shown_url(url), found, remedy="Add --files copy --output DIR; `index mirror` copies an index.")


def _refuse_outputs(words: Sequence[str], taker: Taker | None) -> None:
    """Raise `InputError` for a URL that a command would have to write to."""
    if taker and (taker.writes or (taker.writes_with and any(word.startswith(taker.writes_with) for word in words))):
        return
    for before, word in zip(["", *words], words, strict=False):
        option, _, value = word.partition("=")
        url = word if before in _OUTPUTS else value if option in _OUTPUTS else ""
        if is_url(url):
            remedy = "Name a folder; then `rocwheel publish` puts distributions and their index on a store."
            raise InputError(shown_url(url), "is a URL, which this command can't write to", remedy=remedy)
