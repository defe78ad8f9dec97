"""Where what a web server sent may lead, by a link or by a redirect: the one place that decides it."""

from __future__ import annotations

from urllib.parse import urlsplit

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.quoting import quoted
from rocwheel.stores.urls import shown_url

__all__ = ["check_step"]

_WEB = ("http", "https")
_OWN = ("file", "s3")
"""Places whose pages may lead to other files of the same place."""


def check_step(origin: str, url: str) -> None:
    """Raise `InputError` where what came from ``origin`` may not lead to ``url``.

    It may lead to the web, from https to https alone, and with a user or password only within one server.
    """
    place, shown = shown_url(origin), quoted(shown_url(url))
    try:
        parts = urlsplit(url)
        host, has_user = parts.hostname, "@" in parts.netloc
        _ = parts.port
    except ValueError as e:
        raise InputError(place, f"leads to {shown} ({e})", expected="an address") from e
    start = urlsplit(origin)
    if start.scheme in _OWN and parts[:2] == start[:2]:
        return
    if parts.scheme not in _WEB or not host:
        raise InputError(place, f"leads to {shown}", expected="an address of the web")
    if start.scheme == "https" and parts.scheme != "https":
        found = f"leads from https to {shown}"
        raise InputError(place, found, expected="an address that nobody on the way can change")
    if has_user and parts.netloc != start.netloc:
        found = f"leads to an address with a user or password at {host}"
        raise InputError(place, found, expected="an address without them")
