"""A digest at the end of a page, by which whoever replaces the page sees whether somebody has edited it."""

from __future__ import annotations

from rocwheel.distributions.index.pages.simple_pages import make_digest

__all__ = ["is_as_made", "with_digest"]

_BEGIN, _END = b"<!-- ", b" -->\n"
_LAST = b"</html>\n"


def with_digest(page: bytes) -> bytes:
    """Return an HTML page with a comment at its end, which has the digest of all before it."""
    return page + _BEGIN + make_digest(page).encode() + _END


def is_as_made(page: bytes) -> bool:
    r"""Return whether a page is as `with_digest` has made it; of one without a digest, whether it has its end.

    >>> page = with_digest(b"<html></html>\n")
    >>> is_as_made(page), is_as_made(page.replace(b"></", b">!</"))
    (True, False)
    """
    body, begin, _ = page.rpartition(_BEGIN)
    if page.endswith(_LAST):  # that of an older version
        return True
    return bool(begin) and with_digest(body) == page
