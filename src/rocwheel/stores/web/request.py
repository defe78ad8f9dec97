"""One request to a web server, redirects included, and what a server that refuses it means.

The standard library makes it: what a redirect may lead to has to be decided before it is followed.
"""

from __future__ import annotations

import http.client
import ssl
from contextlib import contextmanager
from math import ceil
from typing import IO, TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urljoin
from urllib.request import HTTPRedirectHandler, Request, build_opener

from rocwheel import __version__
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
from rocwheel.stores.objects.translate import user_remedy
from rocwheel.stores.urls import is_same_server, is_web_url, shown_url, split_user
from rocwheel.stores.web.retry_after import read_retry_after
from rocwheel.stores.web.steps import check_step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message

__all__ = ["LATER", "opened"]

LATER = "Try again later."

_PATIENCE = 60.0
"""Seconds without a byte, after which a connection is given up."""
_BUSY = frozenset({408, 429, 500, 502, 503, 504})
_GONE = frozenset({404, 410})
_REDIRECTS = range(300, 400)
_USER = "Authorization"


@contextmanager
def opened(url: str, headers: dict[str, str]) -> Iterator[Any]:
    """Yield the answer to a request, an `http.client.HTTPResponse`.

    What goes wrong with it, and with reading it, is raised as a `StoreError`; `InputError` for another kind of URL, and
    for a redirect that leads where none may. User and password in the URL go to its own server alone.
    """
    place = shown_url(url)
    if not is_web_url(url):
        raise InputError(place, "is not the URL of a web page", expected="http:// or https://")
    try:
        with build_opener(_Redirects).open(_make_request(url, headers), timeout=_PATIENCE) as answer:
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
