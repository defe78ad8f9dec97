"""The address of an index, as the lines on its front page name it."""

from __future__ import annotations

import re
from contextlib import suppress
from html import unescape
from urllib.parse import urlsplit

from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.stores.urls import without_secrets

__all__ = ["URL_NOTE", "checked_url", "noted_url"]

URL_NOTE = "index-url"
"""The name under which a page notes the address, for those who make it again."""

_PLAIN = re.compile(r"[\w.~:/@%+=,\[\]-]+", re.ASCII)
"""What shells take for text within double quotes."""
_OPTION = "--url"


def noted_url(page: bytes) -> str:
    """Return the address that a page notes; empty for none, or for one that somebody has made unusable."""
    found = re.search(rf'<meta name="{URL_NOTE}" content="([^"]*)">'.encode(), page)
    with suppress(InputError):
        return checked_url(unescape(found[1].decode(errors="replace"))) if found else ""
    return ""


def checked_url(text: str) -> str:
    """Return the address with a slash at its end.

    Raises `InputError` for another kind of address, for one with a password, which a page would publish, and for
    signs that a shell would take for more than text.
    """
    expected = "an address such as https://example.org/rocm/simple/"
    try:
        parts = urlsplit(text)
        is_address = parts.scheme == "file" or (parts.scheme in {"http", "https"} and bool(parts.hostname))
    except ValueError:
        is_address = False
    if is_address and "@" in parts.netloc:
        raise InputError(_OPTION, "has a user or a password in it", expected=expected, remedy="Leave them out.")
    if not is_address or not _PLAIN.fullmatch(text):
        remedy = "Write other signs as %XX."
        shown = quoted(without_secrets(text).rpartition("@")[2].partition("?")[0])
        raise InputError(_OPTION, f"is {shown}", expected=expected, remedy=remedy)
    return f"{text.rstrip('/')}/"
