"""Reads web servers with the standard library, including pages, files, and folder listings."""

from __future__ import annotations

import asyncio
import http.client
import io
import ssl
import time
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from email.utils import mktime_tz, parsedate_tz
from functools import partial
from html.parser import HTMLParser
from math import ceil
from typing import IO, TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit
from urllib.request import AbstractHTTPHandler, HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

import msgspec

from rocwheel import __version__
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, quoted
from rocwheel.core.names import is_file_name
from rocwheel.stores.retry import Result, RetryPolicy, retry
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
from rocwheel.stores.urls import (
    WEB_SCHEMES,
    file_name_at,
    is_same_server,
    is_web_url,
    keep_user,
    shown_url,
    split_user,
    url_below,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from email.message import Message

_OWN = ("file", "s3")
"""URL schemes whose pages may point to other files with the same scheme."""


def check_step(origin: str, url: str) -> None:
    """Raise `InputError` if content from ``origin`` must not point to ``url``.

    Content may point to the web. Content from https may point only to https, and a URL with a user or password only to
    the same server. A local file or a file in a bucket may also point to any other file in the same folder or bucket,
    because its author can also write there.
    """
    place, shown = shown_url(origin), quoted(shown_url(url))
    try:
        parts = urlsplit(url)
        host, has_user = parts.hostname, "@" in parts.netloc
        _ = parts.port
    except ValueError:  # the text of the error may contain a password
        raise InputError(place, f"points to {shown}", expected="a URL") from None
    start = urlsplit(origin)
    if start.scheme in _OWN and parts[:2] == start[:2]:
        return
    if parts.scheme not in WEB_SCHEMES or not host:
        raise InputError(place, f"points to {shown}", expected="a web URL")
    if start.scheme == "https" and parts.scheme != "https":
        found = f"points from https to {shown}"
        raise InputError(place, found, expected="an https URL, so that no one can tamper with the content")
    if has_user and parts.netloc != start.netloc:
        found = f"points to a URL with a user or password at {host}"
        raise InputError(place, found, expected="a URL without a user or password")


_MOST_DIGITS = 9


def read_retry_after(text: str, now: float | None = None) -> float:
    """Return the number of seconds that a server asks clients to wait, or 0 for other text.

    ``now`` is the current time in seconds since 1970.

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
"""The number of seconds without any data after which a connection is closed."""
_SPAN = 60.0
"""The time in seconds in which a connection must make progress. Otherwise, it is closed.

The first progress is the complete header of the response, after all redirects. Each further `SLOWEST` bytes of the body
and its end also count as progress. Interim responses, chunk extensions, and trailers don't count as progress.
"""
SLOWEST = 64 << 10
_BUSY = frozenset({408, 429, 500, 502, 503, 504})
_GONE = frozenset({404, 410})
_REDIRECTS = range(300, 400)
_USER = "Authorization"


@contextmanager
def open_answer(url: str, headers: dict[str, str]) -> Iterator[Any]:
    """Yield the response to a request, which is an `http.client.HTTPResponse`.

    Errors from the request and from reading the response are raised as `StoreError`. Raises `InputError` for any other
    kind of URL and for a forbidden redirect. A user and password in the URL are sent only to the URL's own server.
    """
    place = shown_url(url)
    if not is_web_url(url):
        raise InputError(place, "is not the URL of a web page", expected="http:// or https://")
    pace = _Pace()
    opener = build_opener(_Redirects, _PacedHandler(pace), _PacedTlsHandler(pace))
    try:
        with opener.open(_make_request(url, headers), timeout=_TIMEOUT) as answer:
            pace.begin()
            answer.pace = pace
            if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise StoreError(
                    place,
                    "is compressed, even though compression was not requested",
                    remedy="Contact the server's operator.",
                )
            yield answer
    except HTTPError as e:
        e.close()
        raise _refusal(url, e.code, e.headers) from e
    except _TooSlowError as e:
        raise _too_slow(place) from e
    except URLError as e:
        raise _unreachable(place, e.reason) from e
    except http.client.InvalidURL as e:
        raise MissingStoreError(place, "has an invalid host or port", remedy="Correct it.") from e
    except (http.client.HTTPException, OSError) as e:
        what = type(e).__name__ if isinstance(e, http.client.HTTPException) else str(e)
        raise BrokenTransferError(place, f"the transfer ended early ({what})", remedy=LATER) from e
    except ValueError:  # its text may contain the password
        raise MissingStoreError(place, "can't be requested", remedy="Correct the URL.") from None


async def within_span(place: str, request: Callable[[], Awaitable[Result]]) -> Result:
    """Return the result of a request by another HTTP library: the head of a response, or `SLOWEST` bytes of its body.

    Raises `BrokenTransferError` about ``place`` if there is no result in time.
    """

    async def wait() -> Result:
        return await request()

    try:
        return await asyncio.wait_for(wait(), _SPAN)
    except asyncio.TimeoutError:
        raise _too_slow(place) from None


def _too_slow(place: str) -> BrokenTransferError:
    return BrokenTransferError(place, "was too slow to finish", remedy=LATER)


class _TooSlowError(TimeoutError):
    """A connection didn't make progress in time, even though bytes may have arrived."""


class _Pace:
    """The deadline by which a request, including its redirects, must make further progress."""

    def __init__(self) -> None:
        self._deadline = 0.0
        self._received = 0
        self.begin()

    def begin(self) -> None:
        """Move the deadline, because there was progress."""
        self._deadline = time.monotonic() + _SPAN
        self._received = 0

    def receive(self, size: int) -> None:
        """Count bytes of the body."""
        self._received += size
        if self._received >= SLOWEST:
            self.begin()

    def pause(self, since: float) -> None:
        """Exclude the time since ``since``, because this process spent it on other work."""
        self._deadline += time.monotonic() - since

    def left(self) -> float:
        """Return the number of seconds until the deadline. Raises `_TooSlowError` if the deadline has passed."""
        if (left := self._deadline - time.monotonic()) <= 0:
            raise _TooSlowError
        return left


class _PacedReader(io.RawIOBase):
    """Reads bytes from a socket until a deadline."""

    def __init__(self, sock: Any, pace: _Pace) -> None:
        super().__init__()
        self._socket = sock
        self._file = sock.makefile("rb", buffering=0)
        self._pace = pace

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._file.fileno())

    def readinto(self, buffer: Any) -> int | None:
        left = self._pace.left()
        self._socket.settimeout(min(left, _TIMEOUT))
        try:
            count: int | None = self._file.readinto(buffer)
        except TimeoutError:
            self._pace.left()
            raise
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


class _PacedSocket:
    """The part of a socket that `http.client.HTTPResponse` needs."""

    def __init__(self, sock: Any, pace: _Pace) -> None:
        self._socket = sock
        self._pace = pace

    def makefile(self, _: str) -> io.BufferedReader:
        return io.BufferedReader(_PacedReader(self._socket, self._pace))


class _Paced(AbstractHTTPHandler):
    """Reads all responses with one deadline for progress. Python's own timeout applies to each read from the socket."""

    def __init__(self, pace: _Pace) -> None:
        super().__init__()
        self._pace = pace

    def do_open(self, http_class: Any, req: Request, **settings: Any) -> Any:
        def connect(*place: Any, **options: Any) -> Any:
            connection = http_class(*place, **options)
            connection.response_class = partial(_open_response, self._pace)
            return connection

        return super().do_open(connect, req, **settings)


def _open_response(pace: _Pace, sock: Any, *settings: Any, **options: Any) -> http.client.HTTPResponse:
    return http.client.HTTPResponse(_PacedSocket(sock, pace), *settings, **options)  # type: ignore[arg-type]


class _PacedHandler(_Paced, HTTPHandler):
    pass


class _PacedTlsHandler(_Paced, HTTPSHandler):
    pass


def _make_request(url: str, headers: dict[str, str]) -> Request:
    address, user = split_user(url)
    own = {"Accept-Encoding": "identity", "User-Agent": f"rocwheel/{__version__}"}
    request = Request(address, headers={**own, **headers})  # noqa: S310 # the scheme was checked
    if user:
        request.add_unredirected_header(_USER, user)
    return request


class _Redirects(HTTPRedirectHandler):
    def http_error_302(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any) -> Any:
        """Raise an error with the target of a forbidden redirect. urllib rejects some redirects without a message."""
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
        fp.close()  # otherwise, the whole body would be read first, even if it is very long
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        user = req.unredirected_hdrs.get(_USER)
        if request and user and is_same_server(newurl, req.full_url):
            request.add_unredirected_header(_USER, user)
        return request


def _unreachable(place: str, reason: object) -> StoreError:
    if isinstance(reason, TimeoutError):
        return BrokenTransferError(place, "the request timed out", remedy=LATER)
    if isinstance(reason, ConnectionResetError | BrokenPipeError):
        return BrokenTransferError(place, f"the transfer ended early ({reason})", remedy=LATER)
    what = "has an untrusted certificate" if isinstance(reason, ssl.SSLError) else "can't connect to the server"
    return MissingStoreError(place, f"{what} ({reason})", remedy="Correct the URL.")


def user_remedy(*, has_user: bool) -> str:
    """Return the remedy if a web server requires a user and password.

    ``has_user`` means that the request contained a user and password, which the server rejected.
    """
    if has_user:
        return "Correct the user and password in the URL."
    return "Add a user and password to the URL: https://USER:PASSWORD@HOST/..."


def _refusal(url: str, status: int, headers: Message) -> StoreError:
    place = shown_url(url)
    found = f"the server returned status {status}"
    if status in _GONE:
        return MissingFileError(place, "does not exist", remedy="Correct the URL.")
    if status in {401, 407}:
        return CredentialsError(place, found, remedy=user_remedy(has_user=bool(split_user(url)[1])))
    if status == 403:
        return ForbiddenError(place, found, remedy="Ask the owner for permission.")
    if status in _BUSY:
        pause = read_retry_after(headers.get("Retry-After", ""))
        remedy = f"Try again in {ceil(pause)} seconds, as requested by the server." if pause else LATER
        return BusyError(place, found, remedy=remedy, retry_after=pause)
    if status in _REDIRECTS:
        found = f"has endless or broken redirects (status {status})"
        return StoreError(
            place, found, remedy="Specify the URL that the redirect should point to, or contact the server's operator."
        )
    return StoreError(place, found)


LARGEST_PAGE = 128 << 20
"""The maximum size of a page in bytes. The project list of the largest public index is about a third of this size."""

_BLOCK = 1 << 20
_PROGRESS = 1 << 20
"""The number of bytes that an attempt must receive to count as progress. Otherwise, a transfer could take forever."""
_PARTIAL = 206


class WebPage(msgspec.Struct, frozen=True):
    """A page from a web server."""

    url: str
    """The final URL after redirects. It contains the user and password if they belong to its server."""
    content_type: str
    """The content type in lowercase, without parameters."""
    data: bytes
    e_tag: str | None = None


def read_web_page(url: str, *, accept: str = "*/*", limit: int = LARGEST_PAGE) -> WebPage:
    """Return the page at an ``http(s)`` URL, at most ``limit`` bytes, in one of the formats ``accept`` (:rfc:`9110`).

    Raises a `StoreError` if the page is unavailable after several attempts. Raises `InputError` for any other kind of
    URL, a longer page, and a forbidden redirect.
    """
    return retry(lambda: _read(url, accept, limit))


def stream_web_file(url: str, start: int = 0) -> Iterator[bytes]:
    """Yield the bytes of a file from ``start``. An interrupted transfer resumes.

    Raises the same errors as `read_web_page`, and `OutdatedError` if the server has a different file when a transfer
    resumes.
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


def find_web_file(url: str) -> StoredFile:
    """Return a server's information about the file at an ``http(s)`` URL. Raises the same errors as `read_web_page`.

    The size is -1 if the server doesn't send it. Only the first byte is requested, because some servers reject HEAD.
    """
    return retry(lambda: _find(url))


def _find(url: str) -> StoredFile:
    with open_answer(url, {"Range": "bytes=0-0"}) as answer:
        whole = answer.headers.get("Content-Range", "").rpartition("/")[2]
        length = whole if answer.status == _PARTIAL else answer.headers.get("Content-Length", "")
        modified = None
        with suppress(ValueError, OverflowError, TypeError, IndexError):  # the date is malformed
            if date := parsedate_tz(answer.headers.get("Last-Modified", "")):
                modified = datetime.fromtimestamp(mktime_tz(date), timezone.utc)
        size = int(length) if length.isascii() and length.isdigit() else -1
        return StoredFile(file_name_at(url), size, answer.headers.get("ETag"), modified)


def _read(url: str, accept: str, limit: int) -> WebPage:
    with open_answer(url, {"Accept": accept}) as answer:
        pieces: list[bytes] = []
        size = 0
        for piece in _pieces(answer, url):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                found = f"has more than {count(limit, 'byte')}"
                raise InputError(shown_url(url), found, expected="a page of a package index, or a page of links")
        end = keep_user(answer.geturl(), url)
        return WebPage(end, answer.headers.get_content_type(), b"".join(pieces), answer.headers.get("ETag"))


class _Transfer:
    """The transfer of a file, with its progress and the first tag that the server sent."""

    def __init__(self, url: str, start: int) -> None:
        self.position = start
        self._url = url
        self._e_tag: str | None = None

    def attempt(self) -> Iterator[bytes]:
        """Yield the bytes of a single request."""
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
    """Yield the bytes of a response as they arrive. Raise `BrokenTransferError` if the response ends early."""
    announced, received = answer.headers.get("Content-Length", ""), 0
    pace: _Pace = answer.pace
    while piece := answer.read1(_BLOCK):
        received += len(piece)
        pace.receive(len(piece))
        given = time.monotonic()
        yield piece
        pace.pause(given)
    if announced.isdecimal() and received < int(announced):
        found = f"the transfer ended early (at byte {received} of {announced})"
        raise BrokenTransferError(shown_url(url), found, remedy=LATER)


_MOST_PAGES = 20_000
"""The maximum number of folders in a listing. A server that generates folders can have any number of them."""
_REMEDY = "Specify the files individually, or use a server that lists its folders (nginx: autoindex on)."


def list_pages(base: str, prefix: str) -> Iterator[StoredFile]:
    """Yield the files in and below the folder ``prefix`` of the URL ``base``, sorted by name.

    ``prefix`` ends with a slash or is empty. Links that point elsewhere are ignored. Raises `UnlistableError` for a
    folder without a page of links.
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
            raise InputError(
                shown_url(base), f"has more than {_MOST_PAGES} folders", expected="a folder with fewer subfolders"
            )
    yield from (StoredFile(name, -1) for name in sorted(names))


def _links(base: str, folder: str) -> set[str]:
    """Return the names, relative to ``base``, of the entries below a folder that the folder's page links to."""
    url = url_below(base, folder)
    try:
        page = read_web_page(url)
    except (MissingFileError, ForbiddenError) as e:
        why = "it does not exist" if isinstance(e, MissingFileError) else e.found
        raise UnlistableError(shown_url(url), f"can't be listed: {why}", remedy=_REMEDY) from e
    if page.content_type != "text/html":
        found = f"can't be listed: its page is {page.content_type}"
        raise UnlistableError(shown_url(url), found, expected="a page of links", remedy=_REMEDY)
    parser = _Links()
    with suppress(AssertionError):  # Python's parser raises this error for declarations such as "<!["
        parser.feed(page.data.decode(errors="replace"))
    here = _plain(urljoin(page.url, "."))
    linked = {folder + unquote(rest) for link in parser.found if (rest := _below(here, page, link))}
    return {name for name in linked if all(map(is_file_name, name.rstrip("/").split("/")))}


def _below(here: str, page: WebPage, link: str) -> str:
    """Return the part of a link's URL that follows the page's folder, or an empty string if it points elsewhere."""
    try:
        url = _plain(urljoin(page.url, link))
    except ValueError:
        return ""
    return url.removeprefix(here) if url.startswith(here) else ""


def _plain(url: str) -> str:
    """Return a URL without its query and fragment. Links in the header of a listing only sort the listing."""
    return urlunsplit(urlsplit(url)._replace(query="", fragment=""))


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]
