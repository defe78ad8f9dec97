"""Pages of a simple index: HTML (:pep:`503`, :pep:`629`, :pep:`714`) and JSON (:pep:`691`, :pep:`700`)."""

from __future__ import annotations

import hashlib
import re
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import msgspec
from packaging.utils import is_normalized_name
from packaging.version import Version

from rocwheel.core.names import is_file_name
from rocwheel.distributions.index.pages.upload_times import render_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rocwheel.distributions.index.entries.entry import IndexEntry

__all__ = [
    "API_VERSION",
    "FRONT_PAGE",
    "GENERATOR",
    "PAGES",
    "Page",
    "families_in_root_page",
    "group_by_project",
    "is_absolute",
    "is_project_page",
    "is_root_page",
    "make_digest",
    "make_project_page",
    "make_root_page",
    "projects_in_root_page",
]

API_VERSION = "1.1"
PAGES = ("index.html", "index.json")
"""The two forms of a page."""
FRONT_PAGE = "packages.html"
"""The page for people in the folder of the index; no project has a name with a dot."""

GENERATOR = '<meta name="generator" content="rocwheel index">'
"""In every page in HTML that an index consists of."""
_ROOT_TITLE = "Simple index"
_PROJECT_TITLE = "Links for "
_WAY = re.compile(rb'<form action="([\w.~%-]+)/(?:packages\.html)?"><button>', re.ASCII)
_LINK = re.compile(rb'<a href="([\w.~%-]+)/">', re.ASCII)
_ABSOLUTE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)


class Page(msgspec.Struct, frozen=True):
    """One page in both forms."""

    html: bytes
    json: bytes

    @property
    def digests(self) -> tuple[str, ...]:
        """Digests by which bytes are known as those of the page, in the order of the fields."""
        return make_digest(self.html), make_digest(self.json)


def make_digest(data: bytes) -> str:
    """Return what tells the bytes of one page from others; nothing of security depends on it."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def group_by_project(distributions: Iterable[IndexEntry]) -> dict[str, list[IndexEntry]]:
    """Return the distributions of each project, by version and file name; projects by name."""
    grouped: dict[str, list[IndexEntry]] = {}
    for found in distributions:
        grouped.setdefault(found.project, []).append(found)
    return {project: _sort_by_version(grouped[project]) for project in sorted(grouped)}


def _sort_by_version(distributions: list[IndexEntry]) -> list[IndexEntry]:
    if len(distributions) == 1:  # as so often that comparing versions would be most of the work
        return distributions
    return sorted(distributions, key=lambda found: (Version(found.version), found.filename))


def make_root_page(projects: Iterable[str], *, has_front_page: bool = False, families: Iterable[str] = ()) -> Page:
    """Return the page that lists the projects, by normalised name.

    The ways to a front page, and to the indexes of families below this one, are no links: installers and mirrors take
    each link of this page for a project.
    """
    names = sorted(projects)
    page = FRONT_PAGE if has_front_page else ""
    anchors = [_way(page, "What to install for which GPU")] if has_front_page else []
    anchors += [_way(f"{quote(family, safe='')}/{page}", f"Packages for {family}") for family in families]
    anchors += map(_anchor, names)
    document = {"meta": {"api-version": API_VERSION}, "projects": [{"name": name} for name in names]}
    return Page(_render_html(_ROOT_TITLE, anchors), _render_json(document))


def _anchor(name: str) -> str:
    # Nearly all of the thousands of names are the same in an address and in HTML: to quote each takes longer.
    if name.isascii() and name.replace("-", "").isalnum():
        return f'<a href="{name}/">{name}</a><br>'
    return f'<a href="{quote(name)}/">{escape(name)}</a><br>'


def projects_in_root_page(html: bytes) -> frozenset[str]:
    """Return the projects that a page of `make_root_page` lists; what can't be the name of one is left out."""
    names = (unquote(found.decode()) for found in _LINK.findall(html))
    return frozenset(name for name in names if is_normalized_name(name) and is_file_name(name))


def families_in_root_page(html: bytes) -> frozenset[str]:
    """Return the families that a page of `make_root_page` leads to; names that no folder can have are left out."""
    folders = (unquote(found.decode()) for found in _WAY.findall(html))
    return frozenset(name for name in folders if is_file_name(name))


def _way(address: str, text: str) -> str:
    return f'<form action="{escape(address)}"><button>{escape(text)}</button></form>'


def make_project_page(
    project: str,
    distributions: list[IndexEntry],
    base: str | Mapping[str, str],
    yanked: Mapping[str, str | None] | None = None,
) -> Page:
    """Return the page of one project; ``base`` leads from its folder to the files: empty, or ending in a slash.

    It is a path, or a URL that names its host, taken as it is. Where the files are in several folders, ``base``
    has what leads to each by its name. ``yanked`` has the reasons of yanked files by their names, empty for none
    (:pep:`592`), and none for those of which the JSON form says that they are not yanked.
    """
    yanked = yanked or {}
    bases = {found.filename: base if isinstance(base, str) else base[found.filename] for found in distributions}
    versions = sorted({found.version for found in distributions}, key=Version)
    document = {
        "meta": {"api-version": API_VERSION},
        "name": project,
        "versions": versions,
        "files": [_describe(found, bases[found.filename], yanked) for found in distributions],
    }
    anchors = [_make_anchor(found, bases[found.filename], yanked.get(found.filename)) for found in distributions]
    return Page(_render_html(f"{_PROJECT_TITLE}{project}", anchors), _render_json(document))


def is_root_page(html: bytes) -> bool:
    """Return whether this is a page of `make_root_page`."""
    return _is_own(html, f"<title>{_ROOT_TITLE}</title>")


def is_project_page(html: bytes) -> bool:
    """Return whether this is a page of `make_project_page`."""
    return _is_own(html, f"<title>{_PROJECT_TITLE}")


def _is_own(html: bytes, title: str) -> bool:
    return f"{GENERATOR}\n{title}".encode() in html


def is_absolute(address: str) -> bool:
    """Return whether an address names its host (:rfc:`3986`, section 4.2), so that it leads there from any page."""
    return bool(_ABSOLUTE.match(address))


def _address(base: str, filename: str) -> str:
    return base + quote(filename) if is_absolute(base) else quote(base + filename)


def _make_anchor(found: IndexEntry, base: str, yanked: str | None) -> str:
    fragment = f"#sha256={found.sha256}" if found.sha256 else ""
    attributes = {"href": f"{_address(base, found.filename)}{fragment}"}
    if found.requires_python:
        attributes["data-requires-python"] = found.requires_python
    if found.metadata_sha256 is not None:
        # The first key is the one of PEP 658, which older installers look for.
        digest = f"sha256={found.metadata_sha256}"
        attributes |= {"data-dist-info-metadata": digest, "data-core-metadata": digest}
    # Of no standard, but uv reads it where a server gives HTML alone.
    attributes["data-upload-time"] = render_time(found.upload_time)
    if yanked is not None:
        attributes["data-yanked"] = yanked
    text = " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items())
    return f"<a {text}>{escape(found.filename)}</a><br>"


def _describe(found: IndexEntry, base: str, yanked: Mapping[str, str | None]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "filename": found.filename,
        "url": _address(base, found.filename),
        "hashes": {"sha256": found.sha256} if found.sha256 else {},
        "size": found.size,
        "upload-time": render_time(found.upload_time),
    }
    if found.requires_python:
        entry["requires-python"] = found.requires_python
    if found.metadata_sha256 is not None:
        # Not under the key of PEP 658 as well: pip up to 23.0 fails on its value in JSON, the reason for PEP 714.
        entry["core-metadata"] = {"sha256": found.metadata_sha256}
    if found.filename in yanked:
        reason = yanked[found.filename]
        entry["yanked"] = reason is not None and (reason or True)
    return entry


def _render_html(title: str, anchors: list[str]) -> bytes:
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta name="pypi:repository-version" content="{API_VERSION}">',
        GENERATOR,
        f"<title>{escape(title)}</title>",
        "</head>",
        "<body>",
        *anchors,
        "</body>",
        "</html>",
    ]
    return ("\n".join(lines) + "\n").encode()


def _render_json(document: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document)) + b"\n"
