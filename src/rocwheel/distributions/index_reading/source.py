"""A package index at a URL: which projects it has, and which files of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.messages import quoted
from rocwheel.distributions.index_reading.html_page import read_html_page
from rocwheel.distributions.index_reading.json_page import read_json_page
from rocwheel.distributions.index_reading.listing import RawPage, UnreadablePageError
from rocwheel.distributions.index_reading.trust import (
    ListedFile,
    check_file,
    check_variants_list,
    trusted_projects,
)
from rocwheel.stores.open import open_file
from rocwheel.stores.store import MissingFileError
from rocwheel.stores.urls import is_url, is_web_url, parse_url, shown_url, url_below
from rocwheel.stores.web import LARGEST_PAGE, Page
from rocwheel.stores.web import read_page as read_web_page
from rocwheel.stores.web import stream_file as stream_web_file

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["IndexSource", "ProjectListing", "read_text", "stream_file"]

LARGEST_TEXT = 16 << 20
"""Bytes of core metadata or of a list of variants."""

_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_PAGES = (("index.json", _JSON), ("index.html", "text/html"))
"""What a page is called where no server chooses."""
_JSON_TYPES = frozenset({_JSON, "application/json"})
_HTML_TYPES = frozenset({"application/vnd.pypi.simple.v1+html", "text/html"})


class ProjectListing(msgspec.Struct, frozen=True):
    """The files of a project, as far as they may be trusted."""

    project: str
    files: tuple[ListedFile, ...]
    ignored: tuple[str, ...]
    """Names of what is neither a wheel nor an sdist."""
    problems: tuple[RocwheelError, ...]
    """What may not be trusted, and why."""
    variants: dict[str, str] = {}
    """Addresses of the lists of wheel variants (:pep:`825`, a draft), by their names."""


class IndexSource:
    """A package index; nothing is read before it is asked for. Several threads may use it at once."""

    def __init__(self, url: str) -> None:
        """Note the URL of the page of all projects: ``http(s)://``, ``file://``, ``s3://``; raises as `parse_url`."""
        if not is_url(url):
            raise InputError(url, "is not a URL", expected="http://, https://, file:// or s3://")
        parse_url(url)
        self.address = url_below(url, "")
        """The URL to ask, with user and password if it has them."""

    @property
    def url(self) -> str:
        """The URL as messages show it."""
        return shown_url(self.address)

    def projects(self) -> tuple[str, ...]:
        """Return the normalised names of all projects; raise `InputError` where no page lists them."""
        return trusted_projects(_parse(_read(self.address)))

    def require_page(self) -> None:
        """Raise `MissingFileError` where there is no page of all projects, which may be huge and is not read for this.

        Raises as stores do where it can't be had.
        """
        if is_web_url(self.address):
            next(stream_web_file(self.address), b"")
        else:
            _read(self.address)

    def read_project(self, project: str) -> ProjectListing | None:
        """Return what the page of a project lists, none where there is none; raise `InputError` for another page."""
        try:
            answer = _read(url_below(self.address, f"{canonicalize_name(project)}/"))
        except MissingFileError:
            return None
        return _sort_out(canonicalize_name(project), answer, _parse(answer))


def stream_file(file: ListedFile, start: int = 0) -> Iterator[bytes]:
    """Yield the bytes of a file from ``start``, and not many more than its page says it has."""
    if is_web_url(file.url):
        return stream_web_file(file.url, start)
    store, name = open_file(file.url)
    return store.stream(name, start)


def read_text(url: str, limit: int = LARGEST_TEXT) -> bytes:
    """Return a small file of an index; raise `InputError` for one of more than ``limit`` bytes, and as stores do."""
    if is_web_url(url):
        return read_web_page(url, limit=limit).data
    store, name = open_file(url)
    data = store.read_range(name, 0, limit + 1)
    if len(data) > limit:
        raise InputError(shown_url(url), f"has more than {limit} bytes", expected="a text")
    return data


def _sort_out(project: str, answer: Page, page: RawPage) -> ProjectListing:
    files: dict[str, ListedFile] = {}
    ignored: list[str] = []
    problems: list[RocwheelError] = []
    variants: dict[str, str] = {}
    for raw in page.files:
        try:
            if found := check_variants_list(raw, answer.url, page.base):
                variants.update([found])
                continue
            file = check_file(raw, project, answer.url, page.base)
        except InputError as e:
            problems.append(e)
            continue
        if file is None:
            ignored.append(raw.filename or raw.url)
        elif files.setdefault(file.filename, file).sha256 != file.sha256:
            twice = f"lists {file.filename} twice, with different hashes"
            problems.append(InputError(shown_url(answer.url), twice, remedy="Ask who publishes it."))
    return ProjectListing(project, tuple(files.values()), tuple(ignored), tuple(problems), variants)


def _read(url: str) -> Page:
    if is_web_url(url):
        return read_web_page(url, accept=_ACCEPT)
    for name, content_type in _PAGES:
        store, file = open_file(f"{url}{name}")
        try:
            data = store.read_range(file, 0, LARGEST_PAGE + 1)
        except MissingFileError:
            continue
        if len(data) > LARGEST_PAGE:
            raise InputError(shown_url(url), f"has more than {LARGEST_PAGE} bytes", expected="a page of an index")
        return Page(url, content_type, data)
    raise MissingFileError(shown_url(url), "has no page of an index", remedy="Correct the URL.")


def _parse(answer: Page) -> RawPage:
    try:
        if answer.content_type in _JSON_TYPES:
            return read_json_page(answer.data)
        if answer.content_type in _HTML_TYPES:
            return read_html_page(answer.data)
    except UnreadablePageError as e:
        raise InputError(shown_url(answer.url), str(e), remedy="Is it the URL of a package index?") from e
    found = f"has the type {quoted(answer.content_type)}"
    raise InputError(shown_url(answer.url), found, expected="a page of a package index, in HTML or JSON")
