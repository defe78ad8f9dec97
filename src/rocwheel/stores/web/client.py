"""Pages and files of web servers: read to a limit of size and time, and tried again where that helps."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.messages.counting import count
from rocwheel.stores.errors import BrokenTransferError, PassingError, outdated
from rocwheel.stores.resume import Patience, resumed
from rocwheel.stores.urls import keep_user, shown_url
from rocwheel.stores.web.request import LATER, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LARGEST_PAGE", "Page", "read_page", "stream_file"]

LARGEST_PAGE = 128 << 20
"""Bytes; the page of all projects of the largest public index has about a third of it."""

_BLOCK = 1 << 20
_SPAN = 60.0
"""Seconds, in each of which `_SLOWEST` bytes have to come: else a connection is given up."""
_SLOWEST = 64 << 10
_PROGRESS = 1 << 20
"""Bytes that an attempt has to bring not to count as failed: so a file never takes for ever."""
_PARTIAL = 206


class Page(msgspec.Struct, frozen=True):
    """What a server answered."""

    url: str
    """Where it was in the end, after redirects; with user and password if that is the server that they were for."""
    content_type: str
    """Without parameters, in lower case."""
    data: bytes
    e_tag: str | None = None


def read_page(url: str, *, accept: str = "*/*", limit: int = LARGEST_PAGE) -> Page:
    """Return the page at a ``http(s)`` URL, of at most ``limit`` bytes, in a form that ``accept`` has (:rfc:`9110`).

    Raises a `StoreError` when it can't be had, also after several attempts; `InputError` for another kind of URL, a
    page that is longer, and a redirect that leads where none may.
    """
    return resumed(lambda: _read(url, accept, limit))


def stream_file(url: str, start: int = 0) -> Iterator[bytes]:
    """Yield the bytes of a file from ``start``; a transfer that ends early is taken up. Raises as `read_page` does.

    Raises `OutdatedError` where the server has another file by then.
    """
    transfer, patience = _Transfer(url, start), Patience()
    while True:
        before = transfer.position
        try:
            yield from transfer.attempt()
        except PassingError as e:
            patience.pause_or_raise(e, has_progress=transfer.position - before >= _PROGRESS)
        else:
            return


def _read(url: str, accept: str, limit: int) -> Page:
    with opened(url, {"Accept": accept}) as answer:
        pieces: list[bytes] = []
        size = 0
        for piece in _pieces(answer, url):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                found = f"has more than {count(limit, 'byte')}"
                raise InputError(shown_url(url), found, expected="a page of a package index, or of links")
        end = keep_user(answer.geturl(), url)
        return Page(end, answer.headers.get_content_type(), b"".join(pieces), answer.headers.get("ETag"))


class _Transfer:
    """A file on its way: how far it is, and what the server called it at first."""

    def __init__(self, url: str, start: int) -> None:
        self.position = start
        self._url = url
        self._e_tag: str | None = None

    def attempt(self) -> Iterator[bytes]:
        """Yield what one request brings."""
        headers = {"Range": f"bytes={self.position}-"} if self.position else {}
        with opened(self._url, headers) as answer:
            self._require_same(answer)
            skipped = 0 if answer.status == _PARTIAL else self.position
            for block in _pieces(answer, self._url):
                rest = block[min(skipped, len(block)) :]
                skipped -= len(block) - len(rest)
                if rest:
                    self.position += len(rest)
                    yield rest

    def _require_same(self, answer: Any) -> None:
        e_tag = answer.headers.get("ETag")
        self._e_tag = self._e_tag or e_tag
        begins = answer.headers.get("Content-Range", "").startswith(f"bytes {self.position}-")
        if e_tag != self._e_tag or (answer.status == _PARTIAL and not begins):
            raise outdated(shown_url(self._url))


def _pieces(answer: Any, url: str) -> Iterator[bytes]:
    """Yield the bytes of an answer as they come; raise `BrokenTransferError` for an end before its announced one."""
    announced, received = answer.headers.get("Content-Length", ""), 0
    begin, since = time.monotonic(), 0
    while piece := answer.read1(_BLOCK):
        received += len(piece)
        yield piece
        now = time.monotonic()
        if now - begin > _SPAN:
            if received - since < _SLOWEST:
                raise BrokenTransferError(shown_url(url), "comes so slowly that it never ends", remedy=LATER)
            begin, since = now, received
    if announced.isdecimal() and received < int(announced):
        found = f"the transfer ended early (at byte {received} of {announced})"
        raise BrokenTransferError(shown_url(url), found, remedy=LATER)
