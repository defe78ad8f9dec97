"""Reads and writes the pages of a simple index (:pep:`503`, :pep:`691`): HTML, JSON, and the lists of variants."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from contextlib import suppress
from html import escape
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urldefrag

import msgspec
from packaging.utils import is_normalized_name
from packaging.version import Version

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError
from rocwheel.core.names import is_file_name
from rocwheel.core.reading import read_regular
from rocwheel.core.workers import raise_all
from rocwheel.index.entry import IndexEntry
from rocwheel.index.upload_times import parse_time, render_time
from rocwheel.wheels.variants import find_contradictions, index_file_name, parse_metadata, render_index_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from rocwheel.wheels.variants import VariantMetadata


_SHA256 = re.compile(r"[0-9a-f]{64}")


def is_sha256(text: str) -> bool:
    """Return whether a text is a SHA-256 hash in lowercase hexadecimal."""
    return bool(_SHA256.fullmatch(text))


class RawFile(msgspec.Struct, frozen=True, rename="kebab"):
    """A file on a project's page (:pep:`503`, :pep:`691`), before any checks."""

    url: str
    """The URL on the page, relative to the page's base. In HTML, the part after a ``#`` is in `hashes`."""
    filename: str
    """The file name on the page; empty in HTML if only the URL contains it."""
    hashes: dict[str, str] = {}
    """The digests in hexadecimal, keyed by algorithm name."""
    size: int | None = None
    requires_python: str | None = None
    core_metadata: bool | dict[str, str] | None = None
    yanked: bool | str | None = None
    upload_time: str | None = None
    dist_info_metadata: bool | dict[str, str] | None = None
    """The former name of `core_metadata` (:pep:`714`)."""

    @property
    def metadata_hashes(self) -> dict[str, str] | None:
        """The digests of the core metadata next to the file.

        `None` if there is no such metadata; empty if there is metadata without digests.
        """
        promised = self.core_metadata if self.core_metadata is not None else self.dist_info_metadata
        return promised if isinstance(promised, dict) else {} if promised else None

    @property
    def yanked_reason(self) -> str | None:
        """The reason for yanking the file, which may be empty, or `None` for a file that is not yanked.

        Only a truthy value yanks a file. In pip and :pep:`691`, an empty string doesn't yank the file.
        """
        return (self.yanked if isinstance(self.yanked, str) else "") if self.yanked else None


class RawPage(msgspec.Struct, frozen=True):
    """A page of an index: either the page of a project or the page of all projects."""

    files: tuple[RawFile, ...] = ()
    """The files of a project. In HTML, each link is treated as a file."""
    projects: tuple[str, ...] = ()
    """The names of the projects. In HTML, the text of each link is treated as a name."""
    base: str = ""
    """The base of the page's URLs, relative to the page. Empty if the page itself is the base."""
    name: str | None = None
    """The name of the project, only in JSON."""
    version: str = "1.0"
    """The format version (:pep:`629`)."""
    has_files: bool = True
    """Whether a JSON page has a list of files, even an empty one."""
    has_projects: bool = True


class _Meta(msgspec.Struct, rename="kebab"):
    api_version: str = "1.0"


class _Named(msgspec.Struct):
    name: str


class _Document(msgspec.Struct):
    meta: _Meta = msgspec.field(default_factory=_Meta)
    name: str | None = None
    files: tuple[RawFile, ...] | msgspec.UnsetType = msgspec.UNSET
    projects: tuple[_Named, ...] | msgspec.UnsetType = msgspec.UNSET


def decode_json_page(data: bytes) -> RawPage:
    """Return the contents of a JSON page. Raise `msgspec.DecodeError` for other text."""
    page = decode_json(data, _Document)
    files, projects = page.files or (), tuple(project.name for project in page.projects or ())
    has_files, has_projects = page.files is not msgspec.UNSET, page.projects is not msgspec.UNSET
    return RawPage(files, projects, "", page.name, page.meta.api_version, has_files, has_projects)


class _EditedDocument(msgspec.Struct):
    files: tuple[dict[str, Any], ...] = ()


def decode_edited_page(data: bytes) -> tuple[RawFile, ...]:
    """Return the files in a local JSON page, which someone may have edited.

    A value of the wrong type is treated as missing, and the rest of the file's entry is used. Raises
    `msgspec.DecodeError` if there is no list of files.
    """
    return tuple(map(_edited_file, decode_json(data, _EditedDocument).files))


class _EditedRoot(msgspec.Struct):
    projects: tuple[_Named, ...] = ()


def decode_edited_root(data: bytes) -> tuple[str, ...]:
    """Return the projects in a local page of all projects. This function is as tolerant as `decode_edited_page`."""
    return tuple(project.name for project in decode_json(data, _EditedRoot).projects)


def _edited_file(given: dict[str, Any]) -> RawFile:
    right: dict[str, Any] = {"url": "", "filename": ""}
    for field in msgspec.structs.fields(RawFile):
        if field.encode_name in given:
            with suppress(msgspec.ValidationError):
                right[field.name] = msgspec.convert(given[field.encode_name], field.type)
    return RawFile(**right)


def decode_html_page(data: bytes) -> RawPage:
    """Return the contents of an HTML page. Each link with a URL is treated as a file, and its text as a project.

    Accepts everything that browsers accept.
    """
    parser = _Anchors()
    with suppress(
        AssertionError
    ):  # Python's parser raises this error for declarations such as "<![". Text before them still counts.
        # If a page ends with an unclosed tag, browsers don't create a link for that tag. Until 2025, Python's parser
        # searched the rest again for each ``<`` in the tag.
        text = data.decode(errors="replace")
        start = text.find("<", text.rfind(">") + 1)
        parser.feed(text if start < 0 else text[:start])
        parser.close()
    parser.end_anchor()
    return RawPage(tuple(parser.files), tuple(parser.texts), parser.base or "", None, parser.version)


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.version = "1.0"
        self.base: str | None = None
        self.files: list[RawFile] = []
        self.texts: list[str] = []
        self._text: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in reversed(attrs)}  # the first of several base elements counts
        if tag == "a":
            self.end_anchor()
            if "href" in given:
                self.files.append(_html_file(given))
                self._text = []
        elif tag == "base" and self.base is None:  # the first base element with a URL counts, even if the URL is empty
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


def _html_file(given: dict[str, str]) -> RawFile:
    address = given["href"].strip()
    try:
        url, fragment = urldefrag(address)
    except ValueError:
        url, fragment = address, ""
    promised = given.get("data-core-metadata", given.get("data-dist-info-metadata", "false"))
    return RawFile(
        url=url,
        filename="",
        hashes=_hashes(fragment),
        requires_python=given.get("data-requires-python"),
        core_metadata=promised != "false" and _hashes(promised),
        yanked=(given["data-yanked"] or True) if "data-yanked" in given else None,
        upload_time=given.get("data-upload-time"),
    )


def _hashes(text: str) -> dict[str, str]:
    """Return the digests in a URL fragment such as ``sha256=...``, or an empty dictionary for other text."""
    parts = (part.partition("=") for part in text.split("&"))
    return {name: digest for name, equals, digest in parts if equals and digest}


def read_times(folder: Path) -> dict[tuple[str, str], int]:
    """Return the dates on a project's page, keyed by file name and SHA-256 hash. Empty for a damaged page."""
    found: dict[tuple[str, str], int] = {}
    try:
        files = decode_edited_page(read_regular(folder / "index.json"))
    except (OSError, msgspec.DecodeError):
        return {}
    for file in files:
        with suppress(InputError):
            found[file.filename, file.hashes.get("sha256", "")] = parse_time(file.upload_time or "")
    return found


API_VERSION = "1.1"
PAGES = ("index.html", "index.json")
"""The file names of a page's two formats."""
FRONT_PAGE = "packages.html"
"""The name of the page for human readers in the folder of the index. It contains a dot, so no project can have this
name."""
METADATA_SUFFIX = ".metadata"
"""The suffix of the core metadata next to a distribution (:pep:`658`)."""

GENERATOR = '<meta name="generator" content="rocwheel index">'
"""An element in every HTML page that rocwheel generates for an index."""
_ROOT_TITLE = "Simple index"
_PROJECT_TITLE = "Links for "
_WAY = re.compile(rb'<form action="([\w.~%-]+)/(?:packages\.html)?"><button>', re.ASCII)
_LINK = re.compile(rb'<a href="([\w.~%-]+)/">', re.ASCII)
_ABSOLUTE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)


class Page(msgspec.Struct, frozen=True):
    """A page in both formats."""

    html: bytes
    json: bytes

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests of the page's bytes, in the order of the fields."""
        return make_digest(self.html), make_digest(self.json)


def make_digest(data: bytes) -> str:
    """Return a digest that distinguishes page contents. It is not used for security."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def group_by_project(distributions: Iterable[IndexEntry]) -> dict[str, list[IndexEntry]]:
    """Return the distributions of each project, sorted by version and file name. Projects are sorted by name."""
    grouped: dict[str, list[IndexEntry]] = {}
    for found in distributions:
        grouped.setdefault(found.project, []).append(found)
    return {project: _sort_by_version(grouped[project]) for project in sorted(grouped)}


def _sort_by_version(distributions: list[IndexEntry]) -> list[IndexEntry]:
    if len(distributions) == 1:  # this case is common, and comparing versions would take most of the time
        return distributions
    return sorted(distributions, key=lambda found: (Version(found.version), found.filename))


def make_root_page(projects: Iterable[str], *, has_front_page: bool = False, families: Iterable[str] = ()) -> Page:
    """Return the page that lists the projects by their normalized names.

    The references to a front page and to family indexes are not links, because installers and mirrors would treat each
    link as a project.
    """
    names = sorted(projects)
    page = FRONT_PAGE if has_front_page else ""
    anchors = [_way(page, "What to install for each GPU")] if has_front_page else []
    anchors += [_way(f"{quote(family, safe='')}/{page}", f"Packages for {family}") for family in families]
    anchors += map(_anchor, names)
    document = {"meta": {"api-version": API_VERSION}, "projects": [{"name": name} for name in names]}
    return Page(_render_html(_ROOT_TITLE, anchors), _render_json(document))


def _anchor(name: str) -> str:
    # Almost none of the thousands of names need quoting in URLs and HTML, and quoting each name takes longer.
    if name.isascii() and name.replace("-", "").isalnum():
        return f'<a href="{name}/">{name}</a><br>'
    return f'<a href="{quote(name)}/">{escape(name)}</a><br>'


def projects_in_root_page(html: bytes) -> frozenset[str]:
    """Return the projects on a page from `make_root_page`. Names that no project can have are omitted."""
    names = (unquote(found.decode()) for found in _LINK.findall(html))
    return frozenset(name for name in names if is_normalized_name(name) and is_file_name(name))


def families_in_root_page(html: bytes) -> frozenset[str]:
    """Return the families on a page from `make_root_page`. Names that no folder can have are omitted."""
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
    """Return the page of a project.

    ``base`` is the path from the project's folder to the files, and is empty or ends with a slash.

    It may also be a URL with a host, and is used unchanged. If the files are in several folders, ``base`` maps each
    file name to its base. ``yanked`` maps the names of yanked files to the reasons, which may be empty (:pep:`592`).
    The value `None` marks files that the JSON page lists as not yanked.
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
    """Return whether this is a page from `make_root_page`."""
    return _is_own(html, f"<title>{_ROOT_TITLE}</title>")


def is_project_page(html: bytes) -> bool:
    """Return whether this is a page from `make_project_page`."""
    return _is_own(html, f"<title>{_PROJECT_TITLE}")


def _is_own(html: bytes, title: str) -> bool:
    return f"{GENERATOR}\n{title}".encode() in html


def is_absolute(address: str) -> bool:
    """Return whether a URL contains its host (:rfc:`3986`, section 4.2), so that it works from any page."""
    return bool(_ABSOLUTE.match(address))


def _address(base: str, filename: str) -> str:
    return base + quote(filename) if is_absolute(base) else quote(base + filename)


def _make_anchor(found: IndexEntry, base: str, yanked: str | None) -> str:
    fragment = f"#sha256={found.sha256}" if found.sha256 else ""
    attributes = {"href": f"{_address(base, found.filename)}{fragment}"}
    if found.requires_python:
        attributes["data-requires-python"] = found.requires_python
    if found.metadata_sha256 is not None:
        # The first key is from PEP 658, and older installers look for it.
        digest = f"sha256={found.metadata_sha256}"
        attributes |= {"data-dist-info-metadata": digest, "data-core-metadata": digest}
    # This attribute is not standard, but uv reads it if a server provides only HTML.
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
        # Don't also use the key of PEP 658: pip up to 23.0 fails on its value in JSON, which is the reason for PEP 714.
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


_BEGIN, _END = b"<!-- ", b" -->\n"
_LAST = b"</html>\n"


def with_digest(page: bytes) -> bytes:
    """Return an HTML page with a comment at the end that contains the digest of the preceding bytes."""
    return page + _BEGIN + make_digest(page).encode() + _END


def is_as_made(page: bytes) -> bool:
    r"""Return whether a page is unchanged since `with_digest` created it.

    A page without a digest only needs to be complete.

    >>> page = with_digest(b"<html></html>\n")
    >>> is_as_made(page), is_as_made(page.replace(b"></", b">!</"))
    (True, False)
    """
    body, begin, _ = page.rpartition(_BEGIN)
    if page.endswith(_LAST):  # pages from older versions end like this
        return True
    return bool(begin) and with_digest(body) == page


class VariantsFile(msgspec.Struct, frozen=True):
    """A file next to the pages of a project. The pages list it like a distribution."""

    entry: IndexEntry
    data: bytes
    variants: dict[str, tuple[str, ...]]
    """The properties of each variant in the format of the draft, keyed by label."""


def make_variants_files(
    projects: Mapping[str, Sequence[IndexEntry]], machine: Sequence[str], *, may_lack: bool = False
) -> dict[str, list[VariantsFile]]:
    """Return the variant files of the projects with variant wheels. There is one file for each version.

    ``machine`` contains the targets of the machines that the index is for. It is empty if each machine must be queried.
    If there are targets, there must be variants, unless the index ``may_lack`` them because it is for one of several
    families. Raises `InputError` for conflicting variant wheels of the same version, or `ProblemsError` for several
    conflicts.
    """
    problems: list[InputError] = []
    made: dict[str, list[VariantsFile]] = {}
    for project, entries in projects.items():
        by_name: dict[str, list[IndexEntry]] = defaultdict(list)
        for entry in entries:
            if entry.label:
                by_name[index_file_name(entry.filename)].append(entry)
        for name, wheels in by_name.items():
            metadata = {entry.filename: _parse(entry) for entry in wheels}
            problems += find_contradictions(metadata)
            data = render_index_file(metadata, machine or None)
            variants = {one.label: one.words for one in metadata.values()}
            made.setdefault(project, []).append(VariantsFile(_describe_variants(name, wheels, data), data, variants))
    if machine and not made and not may_lack:
        found = f"lists {', '.join(machine)}, but there are no wheel variants"
        problems.append(InputError("--variants-for", found, remedy="Build wheel variants with --variants."))
    raise_all("variant wheels", problems)
    return made


def _parse(entry: IndexEntry) -> VariantMetadata:
    return parse_metadata(entry.variant.encode(), source=entry.filename, label=entry.label)


def _describe_variants(name: str, wheels: Sequence[IndexEntry], data: bytes) -> IndexEntry:
    """Return the page entry of the file, with the date of its newest wheel.

    When a variant is added, the content of the file changes but its name doesn't. Therefore, no page lists its hash.
    The hash would be wrong for anyone who reads the page before the change and the file after it.
    """
    first = wheels[0]
    return IndexEntry(
        filename=name,
        project=first.project,
        version=first.version,
        identity=name,
        size=len(data),
        sha256="",
        requires_python=None,
        metadata_sha256=None,
        upload_time=max(wheel.upload_time for wheel in wheels),
    )
