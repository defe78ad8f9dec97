"""Reads web servers with the standard library: their pages and files, and the listings of their folders."""

from __future__ import annotations

import http.client
import ssl
import time
from contextlib import contextmanager, suppress
from email.utils import mktime_tz, parsedate_tz
from html.parser import HTMLParser
from math import ceil
from typing import IO, TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import msgspec

from rocwheel import __version__
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, quoted
from rocwheel.core.names import is_file_name
from rocwheel.stores.retry import RetryPolicy, retry
from rocwheel.stores.store import (
    BrokenTransferError,
    BusyError,
    CredentialsError,
    ForbiddenError,
    MissingFileError,
    MissingStoreError,
    PassingError,
    StoredFile,
    StoreError,
    UnlistableError,
    outdated,
)
from rocwheel.stores.urls import WEB_SCHEMES, is_same_server, is_web_url, keep_user, shown_url, split_user, url_below

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message

_OWN = ("file", "s3")
"""Places whose pages may lead to other files of the same place."""


def check_step(origin: str, url: str) -> None:
    """Raise `InputError` where what came from ``origin`` may not lead to ``url``.

    It may lead to the web, from https to https alone, and with a user or password only within one server. What lies in
    files of this machine or in a bucket may also lead to any other file there: who wrote it could write there anyway.
    """
    place, shown = shown_url(origin), quoted(shown_url(url))
    try:
        parts = urlsplit(url)
        host, has_user = parts.hostname, "@" in parts.netloc
        _ = parts.port
    except ValueError:  # whose text may have a password
        raise InputError(place, f"leads to {shown}", expected="an address") from None
    start = urlsplit(origin)
    if start.scheme in _OWN and parts[:2] == start[:2]:
        return
    if parts.scheme not in WEB_SCHEMES or not host:
        raise InputError(place, f"leads to {shown}", expected="an address of the web")
    if start.scheme == "https" and parts.scheme != "https":
        found = f"leads from https to {shown}"
        raise InputError(place, found, expected="an address that nobody on the way can change")
    if has_user and parts.netloc != start.netloc:
        found = f"leads to an address with a user or password at {host}"
        raise InputError(place, found, expected="an address without them")


_MOST_DIGITS = 9


def read_retry_after(text: str, now: float | None = None) -> float:
    """Return how many seconds a server asks to wait, at a time in seconds since 1970; none (0) for other text.

    >>> read_retry_after("120"), read_retry_after("Thu, 01 Jan 1970 00:01:00 GMT", now=50.0), read_retry_after("soon")
    (120.0, 10.0, 0.0)
    """
    if text.isascii() and text.isdigit():
        return float(text[:_MOST_DIGITS])
    try:
        parts = parsedate_tz(text)
        then = mktime_tz(parts) if parts else 0.0
    except (ValueError, OverflowError, TypeError, IndexError):
        return 0.0
    return max(then - (time.time() if now is None else now), 0.0)


LATER = "Try again later."

_TIMEOUT = 60.0
"""Seconds without a byte, after which a connection is given up."""
_BUSY = frozenset({408, 429, 500, 502, 503, 504})
_GONE = frozenset({404, 410})
_REDIRECTS = range(300, 400)
_USER = "Authorization"


@contextmanager
def open_answer(url: str, headers: dict[str, str]) -> Iterator[Any]:
    """Yield the answer to a request, an `http.client.HTTPResponse`.

    What goes wrong with it, and with reading it, is raised as a `StoreError`; `InputError` for another kind of URL, and
    for a redirect that leads where none may. User and password in the URL go to its own server alone.
    """
    place = shown_url(url)
    if not is_web_url(url):
        raise InputError(place, "is not the URL of a web page", expected="http:// or https://")
    try:
        with build_opener(_Redirects).open(_make_request(url, headers), timeout=_TIMEOUT) as answer:
            if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise StoreError(place, "comes compressed, which was not asked for", remedy="Ask who runs the server.")
            yield answer
    except HTTPError as e:
        e.close()
        raise _refusal(url, e.code, e.headers) from e
    except URLError as e:
        raise _unreachable(place, e.reason) from e
    except http.client.InvalidURL as e:
        raise MissingStoreError(place, "can't be asked for, as its host or port is none", remedy="Correct it.") from e
    except (http.client.HTTPException, OSError) as e:
        what = type(e).__name__ if isinstance(e, http.client.HTTPException) else str(e)
        raise BrokenTransferError(place, f"the transfer ended early ({what})", remedy=LATER) from e
    except ValueError:  # whose text may have the password
        raise MissingStoreError(place, "can't be asked for", remedy="Correct the URL.") from None


def _make_request(url: str, headers: dict[str, str]) -> Request:
    address, user = split_user(url)
    own = {"Accept-Encoding": "identity", "User-Agent": f"rocwheel/{__version__}"}
    request = Request(address, headers={**own, **headers})  # noqa: S310  # the scheme was looked at
    if user:
        request.add_unredirected_header(_USER, user)
    return request


class _Redirects(HTTPRedirectHandler):
    def http_error_302(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any) -> Any:
        """Say where a redirect leads that may not be followed; urllib refuses some without a word of it."""
        if location := headers.get("Location", ""):
            try:
                check_step(req.full_url, urljoin(req.full_url, location))
            except InputError:
                fp.close()
                raise
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        fp.close()  # or its body would be read first, however long it is
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        user = req.unredirected_hdrs.get(_USER)
        if request and user and is_same_server(newurl, req.full_url):
            request.add_unredirected_header(_USER, user)
        return request


def _unreachable(place: str, reason: object) -> StoreError:
    if isinstance(reason, TimeoutError):
        return BrokenTransferError(place, "nobody answers in time", remedy=LATER)
    if isinstance(reason, ConnectionResetError | BrokenPipeError):
        return BrokenTransferError(place, f"the transfer ended early ({reason})", remedy=LATER)
    what = "its certificate can't be trusted" if isinstance(reason, ssl.SSLError) else "nobody answers there"
    return MissingStoreError(place, f"{what} ({reason})", remedy="Correct the URL.")


def user_remedy(*, has_user: bool) -> str:
    """Return what to do where a web server wants a user and password; with ``has_user``, other ones."""
    if has_user:
        return "Correct the user and password that the URL has."
    return "Give user and password: https://USER:PASSWORD@HOST/..."


def _refusal(url: str, status: int, headers: Message) -> StoreError:
    place = shown_url(url)
    found = f"the server answers with status {status}"
    if status in _GONE:
        return MissingFileError(place, "is not there", remedy="Correct the URL.")
    if status in {401, 407}:
        return CredentialsError(place, found, remedy=user_remedy(has_user=bool(split_user(url)[1])))
    if status == 403:
        return ForbiddenError(place, found, remedy="Ask its owner for the permission.")
    if status in _BUSY:
        pause = read_retry_after(headers.get("Retry-After", ""))
        remedy = f"Try again in {ceil(pause)} seconds, as it asks for." if pause else LATER
        return BusyError(place, found, remedy=remedy, retry_after=pause)
    if status in _REDIRECTS:
        found = f"leads on and on, or nowhere (status {status})"
        return StoreError(place, found, remedy="Give the URL that it should lead to, or ask who runs the server.")
    return StoreError(place, found)


LARGEST_PAGE = 128 << 20
"""Bytes; the page of all projects of the largest public index has about a third of it."""

_BLOCK = 1 << 20
_SPAN = 60.0
"""Seconds, in each of which `_SLOWEST` bytes have to come: else a connection is given up."""
_SLOWEST = 64 << 10
_PROGRESS = 1 << 20
"""Bytes that an attempt has to bring not to count as failed: so a file never takes for ever."""
_PARTIAL = 206


class WebPage(msgspec.Struct, frozen=True):
    """What a server answered."""

    url: str
    """Where it was in the end, after redirects; with user and password if that is the server that they were for."""
    content_type: str
    """Without parameters, in lower case."""
    data: bytes
    e_tag: str | None = None


def read_web_page(url: str, *, accept: str = "*/*", limit: int = LARGEST_PAGE) -> WebPage:
    """Return the page at a ``http(s)`` URL, of at most ``limit`` bytes, in a form that ``accept`` has (:rfc:`9110`).

    Raises a `StoreError` when it can't be had, also after several attempts; `InputError` for another kind of URL, a
    page that is longer, and a redirect that leads where none may.
    """
    return retry(lambda: _read(url, accept, limit))


def stream_web_file(url: str, start: int = 0) -> Iterator[bytes]:
    """Yield the bytes of a file from ``start``; a transfer that ends early is taken up. Raises as `read_web_page` does.

    Raises `OutdatedError` where the server has another file by then.
    """
    transfer, policy = _Transfer(url, start), RetryPolicy()
    while True:
        before = transfer.position
        try:
            yield from transfer.attempt()
        except PassingError as e:
            policy.wait_or_raise(e, has_progress=transfer.position - before >= _PROGRESS)
        else:
            return


def _read(url: str, accept: str, limit: int) -> WebPage:
    with open_answer(url, {"Accept": accept}) as answer:
        pieces: list[bytes] = []
        size = 0
        for piece in _pieces(answer, url):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                found = f"has more than {count(limit, 'byte')}"
                raise InputError(shown_url(url), found, expected="a page of a package index, or of links")
        end = keep_user(answer.geturl(), url)
        return WebPage(end, answer.headers.get_content_type(), b"".join(pieces), answer.headers.get("ETag"))


class _Transfer:
    """A file on its way: how far it is, and what the server called it at first."""

    def __init__(self, url: str, start: int) -> None:
        self.position = start
        self._url = url
        self._e_tag: str | None = None

    def attempt(self) -> Iterator[bytes]:
        """Yield what one request brings."""
        headers = {"Range": f"bytes={self.position}-"} if self.position else {}
        with open_answer(self._url, headers) as answer:
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


_MOST_PAGES = 20_000
"""Folders of one listing; a server that makes them on the spot can have any number."""
_REMEDY = "Name its files one by one, or use a server that lists its folders (nginx: autoindex on)."


def list_pages(base: str, prefix: str) -> Iterator[StoredFile]:
    """Yield the files in the folder ``prefix`` of the URL ``base`` and below, by name.

    ``prefix`` ends in a slash or is empty. Links that lead elsewhere are passed over. Raises `UnlistableError` for a
    folder that has no page of links.
    """
    names: set[str] = set()
    waiting, seen = [prefix], {prefix}
    while waiting:
        folder = waiting.pop()
        for name in _links(base, folder):
            if not name.endswith("/"):
                names.add(name)
            elif name not in seen:
                seen.add(name)
                waiting.append(name)
        if len(seen) > _MOST_PAGES:
            raise InputError(shown_url(base), f"has more than {_MOST_PAGES} folders", expected="a folder of files")
    yield from (StoredFile(name, -1) for name in sorted(names))


def _links(base: str, folder: str) -> set[str]:
    """Return the names, below ``base``, that the page of a folder links to and that are below that folder."""
    url = url_below(base, folder)
    try:
        page = read_web_page(url)
    except (MissingFileError, ForbiddenError) as e:
        why = "it is not there" if isinstance(e, MissingFileError) else e.found
        raise UnlistableError(shown_url(url), f"can't be listed: {why}", remedy=_REMEDY) from e
    if page.content_type != "text/html":
        found = f"can't be listed: its page is {page.content_type}"
        raise UnlistableError(shown_url(url), found, expected="a page of links", remedy=_REMEDY)
    parser = _Links()
    with suppress(AssertionError):  # Python's parser at declarations such as "<!["
        parser.feed(page.data.decode(errors="replace"))
    here = _plain(urljoin(page.url, "."))
    linked = {folder + unquote(rest) for link in parser.found if (rest := _below(here, page, link))}
    return {name for name in linked if all(map(is_file_name, name.rstrip("/").split("/")))}


def _below(here: str, page: WebPage, link: str) -> str:
    """Return what follows the page's folder in the URL of a link; empty for one that leads elsewhere."""
    try:
        url = _plain(urljoin(page.url, link))
    except ValueError:
        return ""
    return url.removeprefix(here) if url.startswith(here) else ""


def _plain(url: str) -> str:
    """Return a URL without query and fragment: links of a listing's headings sort it."""
    return urlunsplit(urlsplit(url)._replace(query="", fragment=""))


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]
