"""The HTML form of a project's page, read where the JSON form is damaged: it has all but the sizes of files."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.distributions.publishing.pages.published import Published, parse_project

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["read_html_form"]

_SHA256 = "sha256="


def read_html_form(project: str, html: bytes, size_of: Callable[[str, str], int]) -> Published | None:
    """Return what a page of `make_project_page` lists; none for one that is cut off or that somebody has edited.

    ``size_of`` returns the size of a file by what leads from the page to its folder, and its name.
    """
    try:
        parser = _Anchors()
        parser.feed(html.decode())
        document = {"name": project, "files": [_describe(attributes) for attributes in parser.anchors]}
        found = parse_project("index.html", project, msgspec.json.encode(document), b"")
    except (ValueError, AssertionError, InputError):  # AssertionError: Python's parser at declarations such as "<!["
        return None
    if not found.entries or found.render(project).html != html:
        return None
    entries = {
        name: msgspec.structs.replace(entry, size=size_of(found.bases[name], name))
        for name, entry in found.entries.items()
    }
    return msgspec.structs.replace(found, entries=entries)


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.anchors: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.anchors.append({name: value or "" for name, value in attrs})


def _describe(attributes: dict[str, str]) -> dict[str, Any]:
    """Return a file as the JSON form has it, of no bytes."""
    url, _, fragment = attributes.get("href", "").partition("#")
    promised = attributes.get("data-core-metadata", "")
    described = {
        "filename": unquote(url.rpartition("/")[2]),
        "url": url,
        "hashes": {"sha256": fragment.removeprefix(_SHA256)} if fragment.startswith(_SHA256) else {},
        "size": 0,
        "upload-time": attributes.get("data-upload-time", ""),
        "requires-python": attributes.get("data-requires-python"),
        "core-metadata": {"sha256": promised.removeprefix(_SHA256)} if promised.startswith(_SHA256) else False,
    }
    if "data-yanked" in attributes:
        described["yanked"] = attributes["data-yanked"] or True
    return described
