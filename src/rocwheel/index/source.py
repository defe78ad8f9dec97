"""Reads a third-party package index at a URL or in a folder, including its projects and the files of each project."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.core.errors import InputError, RocwheelError, WorkError, read_error
from rocwheel.core.hashing import hash_file
from rocwheel.core.messages import quoted
from rocwheel.core.part_file import Expected, receive
from rocwheel.core.reading import FileStamp, read_regular
from rocwheel.core.workers import raise_all
from rocwheel.index.pages import PAGES
from rocwheel.index.trust import (
    ListedFile,
    UnreadablePageError,
    check_file,
    check_variants_list,
    project_of,
    read_html_page,
    read_json_page,
    trusted_projects,
)
from rocwheel.index.upload_times import to_microseconds
from rocwheel.stores.open import open_file
from rocwheel.stores.store import MissingFileError
from rocwheel.stores.urls import file_name_at, is_url, is_web_url, local_path, parse_url, shown_url, url_below
from rocwheel.stores.web import LARGEST_PAGE, WebPage, read_web_page, stream_web_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rocwheel.index.folder_notes import KnownFile
    from rocwheel.index.pages import RawPage


def local_pages(folder: Path) -> list[Path]:
    """Return the HTML and JSON pages in a folder, regardless of their contents."""
    return [path for name in PAGES if (path := folder / name).is_file()]


def read_local_page(page: Path) -> RawPage:
    """Return the contents of a page. Raise `OSError` or `UnreadablePageError` for an unreadable page."""
    data = read_regular(page)
    return read_json_page(data) if page.suffix == ".json" else read_html_page(data)


def is_local_index(folder: Path) -> bool:
    """Return whether a folder has an index page of all projects, which lists projects or can't be read.

    A page that lists distributions doesn't count, because it is the page of a project or of a folder of files.
    """
    pages = local_pages(folder)
    return not any(map(_listed_projects, pages)) and any(map(_may_list_projects, pages))


def indexes_below(folder: Path) -> list[Path]:
    """Return the indexes in direct subfolders of an index: the family indexes, which its pages don't list."""
    listed = {project for page in local_pages(folder) for project in _listed(page)}
    below = sorted(path for path in folder.iterdir() if path.is_dir() and path.name not in listed)
    return [path for path in below if is_local_index(path)]


def _listed(page: Path) -> tuple[str, ...]:
    try:
        return trusted_projects(read_local_page(page))
    except (OSError, UnreadablePageError):
        return ()


def is_project_folder(folder: Path) -> bool:
    """Return whether a folder has a page that lists distributions of a single project with the folder's name."""
    name = canonicalize_name(folder.resolve().name)
    return any(name in _listed_projects(page) for page in local_pages(folder))


def _may_list_projects(page: Path) -> bool:
    try:
        return bool(trusted_projects(read_local_page(page)))
    except (OSError, UnreadablePageError):
        return True


def _listed_projects(page: Path) -> set[str]:
    """Return the projects to which the distributions on a page belong."""
    try:
        files = read_local_page(page).files
    except (OSError, UnreadablePageError):
        return set()
    return {project_of(one.filename or file_name_at(one.url)) for one in files} - {""}


LARGEST_TEXT = 16 << 20
"""The maximum size in bytes of core metadata or a list of variants."""

_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_PAGES = (("index.json", _JSON), ("index.html", "text/html"))
"""The names of a page's formats, for indexes without a server that chooses the format."""
_JSON_TYPES = frozenset({_JSON, "application/json"})
_HTML_TYPES = frozenset({"application/vnd.pypi.simple.v1+html", "text/html"})


class ProjectListing(msgspec.Struct, frozen=True):
    """The trusted files of a project."""

    project: str
    files: tuple[ListedFile, ...]
    ignored: tuple[str, ...]
    """The names of files that are neither wheels nor sdists."""
    problems: tuple[RocwheelError, ...]
    """Errors about the entries that are not trusted."""
    variants: dict[str, str] = {}
    """The URLs of the lists of wheel variants (:pep:`825`, a draft), keyed by name."""


class IndexSource:
    """A package index that is read on demand. Several threads may use it at the same time."""

    def __init__(self, url: str) -> None:
        """Set the URL of the page of all projects: ``http(s)://``, ``file://``, or ``s3://``.

        Raises the same errors as `parse_url`.
        """
        if not is_url(url):
            raise InputError(url, "is not a URL", expected="http://, https://, file://, or s3://")
        parse_url(url)
        self.address = url_below(url, "")
        """The URL for requests, with the user and password if the URL has them."""

    @property
    def url(self) -> str:
        """The URL in the form in which messages show it."""
        return shown_url(self.address)

    def projects(self) -> tuple[str, ...]:
        """Return the normalized names of all projects. Raise `InputError` if no page lists them."""
        return trusted_projects(_parse(_read(self.address)))

    def require_page(self) -> None:
        """Raise `MissingFileError` if there is no page of all projects. The page is not read, because it may be huge.

        Raises the store's errors if the page is unavailable.
        """
        if is_web_url(self.address):
            next(stream_web_file(self.address), b"")
        else:
            _read(self.address)

    def read_project(self, project: str) -> ProjectListing | None:
        """Return the contents of a project's page, or `None` if the page is absent.

        Raise `InputError` for other pages.
        """
        try:
            answer = _read(url_below(self.address, f"{canonicalize_name(project)}/"))
        except MissingFileError:
            return None
        return _sort_out(canonicalize_name(project), answer, _parse(answer))


def stream_file(file: ListedFile, start: int = 0) -> Iterator[bytes]:
    """Yield the bytes of a file from ``start``.

    If the file exceeds the listed size, stop soon after reaching that size.
    """
    if is_web_url(file.url):
        return stream_web_file(file.url, start)
    store, name = open_file(file.url)
    return store.stream(name, start)


def read_text(url: str, limit: int = LARGEST_TEXT) -> bytes:
    """Return the text of a small file in an index.

    Raise `InputError` if the file has more than ``limit`` bytes, and the same errors as the store.
    """
    if is_web_url(url):
        return read_web_page(url, limit=limit).data
    store, name = open_file(url)
    data = store.read_range(name, 0, limit + 1)
    if len(data) > limit:
        raise InputError(shown_url(url), f"has more than {limit} bytes", expected="a smaller file")
    return data


def _sort_out(project: str, answer: WebPage, page: RawPage) -> ProjectListing:
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
            twice = f"lists {file.filename} twice with different hashes"
            problems.append(InputError(shown_url(answer.url), twice, remedy="Contact the publisher."))
    return ProjectListing(project, tuple(files.values()), tuple(ignored), tuple(problems), variants)


def _read(url: str) -> WebPage:
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
        return WebPage(url, content_type, data)
    raise MissingFileError(shown_url(url), "does not contain a package index", remedy="Correct the URL.")


def _parse(answer: WebPage) -> RawPage:
    try:
        if answer.content_type in _JSON_TYPES:
            return read_json_page(answer.data)
        if answer.content_type in _HTML_TYPES:
            return read_html_page(answer.data)
    except UnreadablePageError as e:
        raise InputError(shown_url(answer.url), str(e), remedy="Check that it is the URL of a package index.") from e
    found = f"has the type {quoted(answer.content_type)}"
    raise InputError(shown_url(answer.url), found, expected="a page of a package index, in HTML or JSON")


def files_of_local_index(folder: Path, problems: list[RocwheelError]) -> list[Path]:
    """Return the distinct local files that the pages of an index list; empty for a folder that is not an index.

    Errors about untrusted pages and entries are appended to ``problems``.
    """
    source = IndexSource(folder.absolute().as_uri())
    projects: tuple[str, ...] = ()
    with suppress(InputError):  # there is no page, or it is a different kind of page, such as documentation
        projects = source.projects()
    return list(dict.fromkeys(path for project in projects for path in _files_of(source, project, problems)))


def _files_of(source: IndexSource, project: str, problems: list[RocwheelError]) -> Iterator[Path]:
    try:
        listing = source.read_project(project)
    except InputError as e:
        problems.append(e)
        return
    if listing is None:
        return
    problems += listing.problems
    for file in listing.files:
        parts = urlsplit(file.url)
        if parts.scheme == "file":
            yield Path(local_path(parts.path))


_NAME = "simple"
"""The folder name of an index in `rocwheel index` and most other tools."""
_PROJECTS = 3
"""The maximum number of projects that are checked for files.

A page with links to folders is not necessarily an index, even in a folder with this name.
"""


def find_index(url: str) -> str | None:
    """Return the URL of the package index at or below a URL, or `None` if there is no readable index."""
    return next(filter(_is_index, (url, url_below(url, _NAME))), None)


def raise_for_folders(urls: Iterable[str]) -> None:
    """Raise `InputError` for the URL of a folder that contains an index, or `ProblemsError` for several URLs.

    Call this function only after an index could not satisfy a request, because it reads the pages below.
    """
    problems = [_folder_error(url, below) for url in urls if _is_index(below := url_below(url, _NAME))]
    raise_all("indexes", problems)


def _folder_error(url: str, below: str) -> InputError:
    found = f"is the folder above a package index, {IndexSource(below).url}"
    return InputError(IndexSource(url).url, found, remedy="Use that URL.")


def _is_index(url: str) -> bool:
    """Return whether the page at a URL lists projects, and at least one of the first projects has files."""
    source = IndexSource(url)
    with suppress(RocwheelError):
        listings = (source.read_project(name) for name in source.projects()[:_PROJECTS])
        return any(listing is not None and listing.files for listing in listings)
    return False


def fetch_file(
    folder: Path,
    file: ListedFile,
    *,
    known: KnownFile | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> bool:
    """Download a file into ``folder`` unless a file with the correct hash exists. Return whether the file was absent.

    ``known`` is the record of an earlier run. Raises `WorkError` if the existing file has different bytes, because lock
    files may contain the hash of these bytes. Also raises the same errors as `receive`.
    """
    path, modified = folder / file.filename, _nanoseconds(file.upload_time)
    if _is_present(path, file, known):
        advance(file.size or 0)
        # Set the date of an existing file to its upload date, because the date on the page may have changed.
        with suppress(OSError, OverflowError):  # the date of another user's file stays
            if modified is not None and path.stat().st_mtime_ns != modified:
                os.utime(path, ns=(modified, modified))
        return False
    expected = Expected(source=shown_url(file.url), size=file.size, sha256=file.sha256, modified=modified)
    receive(path, expected, partial(stream_file, file), advance)
    return True


def _is_present(path: Path, file: ListedFile, known: KnownFile | None) -> bool:
    try:
        stamp = FileStamp.of(path.stat())
    except FileNotFoundError:
        return False
    except OSError as e:
        raise read_error(path, e) from e
    try:
        found = known.entry.sha256 if known and known.holds_for(stamp) else hash_file(path)
    except OSError as e:
        raise read_error(path, e) from e
    if found != file.sha256:
        text = f"exists with the SHA-256 {found}, which differs from {shown_url(file.url)}"
        raise WorkError(path, text, expected=file.sha256, remedy="Remove the file, or mirror into another folder.")
    return True


def _nanoseconds(upload_time: str | None) -> int | None:
    """Return the upload date, which the mirror's index also lists, or `None` if the date is malformed."""
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat((upload_time or "").replace("Z", "+00:00"))
        if moment.tzinfo is not None:
            return to_microseconds(moment) * 1000
    return None
