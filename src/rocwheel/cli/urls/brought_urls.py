"""Files at URLs that commands take where they take paths: read by range where that can be done."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec
from rich.filesize import decimal

from rocwheel.cli.output.consoles import messages
from rocwheel.cli.urls.takers import OTHER_URLS, Taker, find_taker
from rocwheel.core.remote_placeholders import registered
from rocwheel.core.scratch import no_room, require_room, scratch_folder, temporary_folder, write_all
from rocwheel.stores.open import RemoteFile, open_file
from rocwheel.stores.store import RangesIgnoredError
from rocwheel.stores.urls import is_url, parse_url, shown_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.stores.store import Store

__all__ = ["BroughtUrls", "brought_urls"]

_UNCOMPARED = ", without comparing what was not read with its hash in RECORD"


class _Brought(msgspec.Struct, frozen=True):
    url: str
    size: int
    remote: RemoteFile | None


class BroughtUrls:
    """The files that the URLs of one command line lead to."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._brought: list[_Brought] = []
        self._is_quiet = self._is_audit = False
        self._taker = Taker()

    def bring(self, words: Sequence[str]) -> list[str]:
        """Return the words of a command line with a path in place of each URL of a file to read.

        Raises `InputError` and `StoreError` as `open_file` and `RemoteFile` do.
        """
        taker = find_taker(words)
        if taker is None or not taker.files:
            return list(words)
        self._taker, self._is_audit = taker, words[0] == "audit"
        self._is_quiet = bool({"--quiet", "-q"} & {*words})
        before = ["", *words]
        return [
            word if last in OTHER_URLS else self._bring_word(word) for word, last in zip(words, before, strict=False)
        ]

    def __enter__(self) -> None:
        """Let the command begin."""

    def __exit__(self, *_: object) -> None:
        """Say how much was read; raise `OutdatedError` for a file that was replaced meanwhile."""
        for brought in self._brought:
            if brought.remote:
                brought.remote.require_unchanged()
            if not self._is_quiet:
                read = brought.remote.read_bytes if brought.remote else brought.size
                what = _UNCOMPARED if self._is_audit else ""
                why = what if brought.remote else ", as the server sends whole files only"
                text = f"read {decimal(read)} of {decimal(brought.size)}{why}: {brought.url}"
                messages.print(text, markup=False)

    def _bring_word(self, word: str) -> str:
        option, equals, value = word.partition("=")
        if option in self._taker.options and equals and self._is_file(value):
            return f"{option}={self._path(value)}"
        return self._path(word) if self._is_file(word) else word

    def _is_file(self, word: str) -> bool:
        """Return whether a word is the URL of a file; some commands take those of folders, too, which are fetched."""
        return is_url(word) and parse_url(word)[2].endswith(self._taker.files)

    def _path(self, url: str) -> str:
        scheme, _, path = parse_url(url)
        if scheme == "file":
            return f"/{unquote(path)}"
        store, name = open_file(url)
        folder = self._stack.enter_context(scratch_folder(Path(temporary_folder(), "rocwheel-url")))
        place = Path(os.path.realpath(folder)) / name
        try:
            remote = RemoteFile(store, name)
        except RangesIgnoredError:
            size = _fetch(store, name, place)
            self._stack.enter_context(registered(place, None, shown_url(url)))
            self._brought.append(_Brought(shown_url(url), size, None))
        else:
            self._stack.enter_context(registered(place, remote, shown_url(url)))
            self._brought.append(_Brought(shown_url(url), remote.size, remote))
        return str(place)


def _fetch(store: Store, name: str, place: Path) -> int:
    try:
        with place.open("wb", buffering=0) as file:
            stored = store.head(name)
            require_room(file, stored.size)
            for piece in store.stream(name, e_tag=stored.e_tag):
                write_all(file, piece)
            return file.tell()
    except OSError as e:
        raise no_room(store.place(name), "it", e) from e


@contextmanager
def brought_urls() -> Iterator[BroughtUrls]:
    """Yield what brings the files of a command line; they go with the block."""
    with ExitStack() as stack:
        yield BroughtUrls(stack)
