"""The links of a built site: which lead nowhere, and to which other hosts they lead."""

from __future__ import annotations

import os
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["SiteLinks"]


class _Page(HTMLParser):
    """The places on a page that a link may lead to, and its links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - as HTMLParser has it
        """Note what the tag has of both."""
        found = {name: value for name, value in attrs if value}
        self.places.update(found[name] for name in ("id", "name") if name in found)
        self.links += [found[name] for name in ("href", "src") if name in found]


class SiteLinks:
    """The links of all pages in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pages = {path: _Page(path.read_text()) for path in folder.rglob("*.html")}

    @property
    def hosts(self) -> set[str]:
        """The other hosts."""
        links = (urlsplit(link) for page in self._pages.values() for link in page.links)
        return {link.hostname or "" for link in links if link.scheme}

    def broken(self) -> list[tuple[str, str]]:
        """Return the links within the site that lead to no file, or to no place on its page, each with its page."""
        return sorted(
            (str(path.relative_to(self._folder)), link)
            for path, page in self._pages.items()
            for link in page.links
            if not urlsplit(link).scheme and not self._leads_somewhere(path, link)
        )

    def _leads_somewhere(self, page: Path, link: str) -> bool:
        parts = urlsplit(link)
        start = self._folder if parts.path.startswith("/") else page.parent  # as on the page of what is not found
        target = Path(os.path.normpath(start / unquote(parts.path).lstrip("/"))) if parts.path else page
        target = target / "index.html" if target.is_dir() else target
        is_placed = not parts.fragment or target not in self._pages
        return target.is_file() and (is_placed or unquote(parts.fragment) in self._pages[target].places)
