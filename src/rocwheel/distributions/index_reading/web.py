"""Pages and files of web servers: read to a limit, from nowhere else than `trust` allows, and tried again.

The standard library does it: what a redirect may lead to has to be decided here, before it is followed, and so that
relative addresses of a page are read from where it was found.
"""

from __future__ import annotations

import base64
import http.client
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import msgspec

from rocwheel.distributions.index_reading.trust import check_step
from rocwheel.foundation.errors import InputError
from rocwheel.stores.errors import (
    BrokenTransferError,
    BusyError,
    CredentialsError,
    ForbiddenError,
    MissingFileError,
    MissingStoreError,
    StoreError,
)
from rocwheel.stores.resume import pause_or_raise, resumed
from rocwheel.stores.urls import shown_url

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Answer", "get", "stream"]

_BLOCK = 1 << 20
_PATIENCE = 60.0
"""Seconds without a byte, after which a connection is given up."""
_PARTIAL = 206
_LATER = "Try again later."


class Answer(msgspec.Struct, frozen=True):
    """What a server sent."""

    url: str
    """Where it was found, after redirects."""
    content_type: str
    """Without parameters, in lower case."""
    data: bytes


def get(url: str, accept: str, limit: int) -> Answer:
    """Return what is at a URL, of at most ``limit`` bytes; ``accept`` says in which formats it is wanted.

    Raises a `StoreError` when it can't be had, also after several attempts, or is longer; `InputError` for a redirect
    that leads where none may.
    """
    return resumed(lambda: _get(url, accept, limit))


def stream(url: str, start: int = 0) -> Iterator[bytes]:
    """Yield the bytes of a file from ``start``; a transfer that ends early is taken up. Raises as `get` does."""
    position, failures = start, 0
    while True:
        try:
            for block in _blocks(url, position):
                position += len(block)
                failures = 0
                yield block
        except (BrokenTransferError, BusyError) as e:  # noqa: PERF203
            failures += 1
            pause_or_raise(e, failures)
        else:
            return


def _get(url: str, accept: str, limit: int) -> Answer:
    with _opened(url, {"Accept": accept}) as answer:
        data = answer.read(limit + 1)
        if len(data) > limit:
            raise StoreError(shown_url(url), f"has more than {limit} bytes", expected="a page of a package index")
        # Of an answer that is shorter than announced, a read with a limit doesn't complain.
        announced = answer.headers.get("Content-Length", "")
        if announced.isdecimal() and len(data) < int(announced):
            raise BrokenTransferError(shown_url(url), "the transfer ended early", remedy=_LATER)
        return Answer(answer.geturl(), answer.headers.get_content_type(), data)


def _blocks(url: str, start: int) -> Iterator[bytes]:
    headers = {"Range": f"bytes={start}-"} if start else {}
    with _opened(url, headers) as answer:
        skipped = 0 if answer.status == _PARTIAL else start
        received, announced = 0, answer.headers.get("Content-Length", "")
        while block := answer.read(_BLOCK):
            received += len(block)
            rest = block[min(skipped, len(block)) :]
            skipped -= len(block) - len(rest)
            if rest:
                yield rest
        if announced.isdecimal() and received < int(announced):
            raise BrokenTransferError(shown_url(url), "the transfer ended early", remedy=_LATER)


class _Redirects(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        try:
            check_step(req.full_url, newurl)
        except InputError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


@contextmanager
def _opened(url: str, headers: dict[str, str]) -> Iterator[Any]:
    """Yield the answer to a request; raise what went wrong with it, and with reading it, as an error of a store."""
    address, user = _without_user(url)
    request = Request(address, headers={"Accept-Encoding": "identity", **headers})  # noqa: S310  # check_step
    if user:
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")
    place = shown_url(url)
    try:
        with build_opener(_Redirects).open(request, timeout=_PATIENCE) as answer:
            if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise StoreError(place, "comes compressed, which was not asked for", remedy="Ask who runs the server.")
            yield answer
    except HTTPError as e:
        with e:
            raise _status_error(place, e.code) from e
    except http.client.HTTPException as e:
        raise BrokenTransferError(place, f"the transfer ended early ({type(e).__name__})", remedy=_LATER) from e
    except URLError as e:
        if isinstance(e.reason, TimeoutError):
            raise BrokenTransferError(place, "nobody answers in time", remedy=_LATER) from e
        raise MissingStoreError(place, f"can't be reached ({e.reason})", remedy="Correct the URL.") from e
    except OSError as e:
        raise BrokenTransferError(place, f"the transfer ended early ({e})", remedy=_LATER) from e
    except ValueError as e:
        raise MissingStoreError(place, f"can't be asked for ({e})", remedy="Correct the URL.") from e


def _without_user(url: str) -> tuple[str, str]:
    """Return a URL without user and password, and these as HTTP's basic authentication has them."""
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=host, fragment="")), unquote(user)


def _status_error(place: str, status: int) -> StoreError:
    found = f"the server answers with status {status}"
    if status in {404, 410}:
        return MissingFileError(place, "is not there", remedy="Correct the URL.")
    if status in {401, 407}:
        return CredentialsError(place, found, remedy="Give user and password: https://USER:PASSWORD@HOST/...")
    if status == 403:
        return ForbiddenError(place, found, remedy="Ask its owner for the permission.")
    if status == 429 or status >= 500:
        return BusyError(place, found, remedy=_LATER)
    return StoreError(place, found)
