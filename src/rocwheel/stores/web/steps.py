"""The addresses to which a link or redirect of a web server may lead: the one place that decides it."""

from __future__ import annotations

from urllib.parse import urlsplit

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.messages.quoting import quoted
from rocwheel.stores.urls import WEB_SCHEMES, shown_url

__all__ = ["check_step"]

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
