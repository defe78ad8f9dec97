"""What the pages of a web server link to: the listings that nginx, Apache and Python make of folders."""

from __future__ import annotations

from contextlib import suppress
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.names import is_file_name
from rocwheel.stores.errors import ForbiddenError, MissingFileError, UnlistableError
from rocwheel.stores.store import StoredFile
from rocwheel.stores.urls import shown_url, url_below
from rocwheel.stores.web.client import Page, read_page

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["list_pages"]

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
        page = read_page(url)
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


def _below(here: str, page: Page, link: str) -> str:
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
