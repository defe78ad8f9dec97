"""Pages of a package index in HTML (:pep:`503`, :pep:`592`, :pep:`629`, :pep:`658`, :pep:`714`)."""

from __future__ import annotations

from contextlib import suppress
from html.parser import HTMLParser
from urllib.parse import urldefrag

from rocwheel.distributions.index_reading.json_page import check_version
from rocwheel.distributions.index_reading.listing import RawFile, RawPage

__all__ = ["read_html_page"]

_METADATA = ("data-core-metadata", "data-dist-info-metadata")
"""The newer key first."""


def read_html_page(data: bytes) -> RawPage:
    """Return what a page lists: each link that has an address, as a file and, by its text, as a project.

    Whatever browsers read can be read. Raises `UnreadablePageError` for a version of the format to come.
    """
    parser = _Anchors()
    with suppress(AssertionError):  # Python's parser at declarations such as "<![": what stands before them counts
        parser.feed(_finished(data.decode(errors="replace")))
        parser.close()
    parser.end_anchor()
    check_version(parser.version)
    return RawPage(tuple(parser.files), tuple(parser.texts), parser.base or "")


def _finished(text: str) -> str:
    """Return a page without a tag at its end that nothing closes: no browser makes a link of it.

    Python's parser, until 2025, looks through all of the rest anew for each ``<`` in it.
    """
    start = text.find("<", text.rfind(">") + 1)
    return text if start < 0 else text[:start]


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.version = "1.0"
        self.base: str | None = None
        self.files: list[RawFile] = []
        self.texts: list[str] = []
        self._text: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in reversed(attrs)}  # the first of several counts
        if tag == "a":
            self.end_anchor()
            if "href" in given:
                self.files.append(_raw_file(given))
                self._text = []
        elif tag == "base" and self.base is None:  # the first that has an address counts, an empty one, too
            self.base = given.get("href")
        elif tag == "meta" and given.get("name") == "pypi:repository-version":
            self.version = given.get("content", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self.end_anchor()

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def end_anchor(self) -> None:
        if self._text is not None:
            self.texts.append("".join(self._text).strip())
            self._text = None


def _raw_file(given: dict[str, str]) -> RawFile:
    url, fragment = _split(given["href"].strip())
    promised = next((given[name] for name in _METADATA if name in given), None)
    return RawFile(
        url=url,
        hashes=_hashes(fragment),
        requires_python=given.get("data-requires-python"),
        metadata_hashes=None if promised in {None, "false"} else _hashes(promised or ""),
        yanked=given.get("data-yanked"),
    )


def _split(address: str) -> tuple[str, str]:
    try:
        url, fragment = urldefrag(address)
    except ValueError:
        return address, ""
    return url, fragment


def _hashes(text: str) -> dict[str, str]:
    """Return the digests of a fragment, ``sha256=...``; empty for other text."""
    parts = (part.partition("=") for part in text.split("&"))
    return {name: digest for name, equals, digest in parts if equals and digest}
