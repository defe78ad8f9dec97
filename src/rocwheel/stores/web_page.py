"""Pages of web servers, which are small and often made on the spot: their length is not known beforehand."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec

from rocwheel import __version__
from rocwheel.foundation.counting import count
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
from rocwheel.stores.resume import resumed
from rocwheel.stores.urls import is_web_url, shown_url

if TYPE_CHECKING:
    from email.message import Message

__all__ = ["Page", "page_url", "read_page"]

_LONGEST = 256 << 20
"""Bytes of a page; the list of all projects of the largest public index has some 30 MB."""
_PATIENCE = 60
"""Seconds without a byte."""
_BUSY = {408, 429, 500, 502, 503, 504}


class Page(msgspec.Struct, frozen=True):
    """What a server answered."""

    url: str
    """Where it was in the end, after redirections."""
    content_type: str
    data: bytes
    e_tag: str | None = None


def page_url(base: str, name: str) -> str:
    """Return the URL of a file below the URL of a folder; the query stays."""
    parts = urlsplit(base)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{quote(name)}"))


def read_page(url: str, *, accept: str = "*/*") -> Page:
    """Return the page at a ``http(s)`` URL, asked for in the forms that ``accept`` has (:rfc:`9110`).

    Raises `StoreError` as `rocwheel.stores.store.Store.read` does, and `InputError` for another kind of URL and for a
    page that never ends.
    """
    if not is_web_url(url):
        raise InputError(shown_url(url), "is not the URL of a web page", expected="http:// or https://")
    return resumed(lambda: _read(url, accept))


def _read(url: str, accept: str) -> Page:
    place = shown_url(url)
    headers = {"Accept": accept, "User-Agent": f"rocwheel/{__version__}"}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  # the scheme was looked at
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310
            data = answer.read(_LONGEST + 1)
            _check_length(place, data, answer.headers)
            kind = answer.headers.get_content_type()
            return Page(answer.geturl(), kind, data, answer.headers.get("ETag"))
    except urllib.error.HTTPError as e:
        raise _refused(place, e.code) from e
    except urllib.error.URLError as e:
        if isinstance(e.reason, TimeoutError):
            raise _ended(place, e.reason) from e
        what = "its certificate can't be trusted" if isinstance(e.reason, ssl.SSLError) else "nobody answers there"
        raise MissingStoreError(place, f"{what} ({e.reason})", remedy="Correct the URL.") from e
    except (http.client.HTTPException, OSError) as e:
        raise _ended(place, e) from e


def _check_length(place: str, data: bytes, headers: Message) -> None:
    if len(data) > _LONGEST:
        raise InputError(place, f"is longer than {count(_LONGEST, 'byte')}", expected="a page")
    promised = headers.get("Content-Length", "")
    if promised.isdigit() and len(data) < int(promised):
        raise BrokenTransferError(place, f"ends at byte {len(data)} of {promised}", remedy="Try again later.")


def _ended(place: str, error: Exception) -> StoreError:
    return BrokenTransferError(place, f"the transfer ended early ({error})", remedy="Try again later.")


def _refused(place: str, status: int) -> StoreError:
    if status in _BUSY:
        return BusyError(place, f"answers with status {status}", remedy="Try again later.")
    if status in {404, 410}:
        return MissingFileError(place, "is not there", remedy="Correct the name.")
    if status == 401:
        return CredentialsError(place, "the server wants a password", remedy="Give it as https://USER:PASSWORD@HOST/.")
    if status == 403:
        return ForbiddenError(place, "the server forbids it", remedy="Ask its owner for the permission.")
    return StoreError(place, f"answers with status {status}")
