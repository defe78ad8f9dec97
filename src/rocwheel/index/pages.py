"""The pages of a simple index as bytes: HTML and JSON, upload times, and the lists of variants.

A file has the date that is given for new files, else the one of its last change. It keeps that while it has the same
bytes. Dates in the future, those of a wrong clock, are the present instead: installers that are given a date would pass
over such files for years.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import msgspec
from packaging.utils import is_normalized_name
from packaging.version import Version

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError
from rocwheel.core.names import is_file_name
from rocwheel.core.reading import read_regular
from rocwheel.core.workers import raise_all
from rocwheel.index.entry import IndexEntry
from rocwheel.wheels.sdist import SourceDate
from rocwheel.wheels.variants import find_contradictions, index_file_name, parse_metadata, render_index_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from rocwheel.wheels.variants import VariantMetadata


_SHA256 = re.compile(r"[0-9a-f]{64}")


def is_sha256(text: str) -> bool:
    """Return whether a text is a SHA-256 in hexadecimal, in small letters."""
    return bool(_SHA256.fullmatch(text))


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_YEAR_10000 = 253402300800 * 1_000_000
_DAY = 86_400 * 1_000_000
_FIRST_RELEASE = 1_735_689_600 * 1_000_000
"""2025, before which rocwheel was nowhere: a clock that says so is wrong, as after its battery was empty."""


def render_time(microseconds: int) -> str:
    """Return a moment as :pep:`700` has it; one before 1970 is 1970."""
    moment = _EPOCH + timedelta(microseconds=min(max(microseconds, 0), _YEAR_10000 - 1))
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> int:
    """Return the microseconds since 1970 of a date, with or without a time (ISO 8601), in UTC unless it says otherwise.

    Raises `InputError` for what is not one.
    """
    try:
        moment = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
        microseconds = to_microseconds(aware)
    except (ValueError, OverflowError) as e:
        raise _no_time(text) from e
    if not 0 <= microseconds < _YEAR_10000:  # which a time zone can lead to, and no page could have
        raise _no_time(text)
    return microseconds


def parse_upload_time(text: str, now: int) -> int:
    """Return what `parse_time` does; raise `InputError` for a date more than a day ahead of the clock, if that is set.

    For a machine in another time zone, or whose clock is somewhat slow, the date may be tomorrow's.
    """
    moment = parse_time(text)
    if now >= _FIRST_RELEASE and moment > now + _DAY:
        option, found = "--upload-time", f"is {text!r}, which is to come: the clock says {render_time(now)[:10]}"
        raise InputError(option, found, expected="a date of the past", remedy="Correct it, or the clock.")
    return moment


def to_microseconds(moment: datetime) -> int:
    """Return the microseconds since 1970 of a moment with a time zone, as an integer: a float has not that many."""
    return (moment - _EPOCH) // _MICROSECOND


def _no_time(text: str) -> InputError:
    parameter, expected = "--upload-time", "a date since 1970, such as 2026-01-31 or 2026-01-31T12:00:00Z"
    return InputError(parameter, f"is {text!r}", expected=expected)


def read_clock(now: int, given: int | None) -> UploadTimes:
    """Return how files are dated by a clock, in microseconds since 1970, and the date ``given`` for new files, if any.

    A clock that is before the first release of rocwheel says nothing of what lies in the future: all dates of an index
    would seem to. Raises `InputError` for it where no date is given.
    """
    if now >= _FIRST_RELEASE:
        return UploadTimes(now, given)
    if given is None:
        place, found = "the clock of this machine", f"says {render_time(now)[:10]}"
        expected = f"a date after {render_time(_FIRST_RELEASE)[:10]}"
        remedy = "Set it right, or have rocwheel index say when new files were uploaded: --upload-time."
        raise InputError(place, found, expected=expected, remedy=remedy)
    return UploadTimes(_YEAR_10000, given)


def choose_upload_time(given: str | None, environment: Mapping[str, str], now: int) -> int | None:
    """Return the date of all new files: the one given, else SOURCE_DATE_EPOCH; none if there is neither.

    Raises `InputError` for a text that is no date, and for a SOURCE_DATE_EPOCH that is no number of seconds.
    """
    if given is not None:
        return parse_upload_time(given, now)
    date = SourceDate.from_environment(environment)
    return min(date.seconds * 1_000_000, _YEAR_10000 - 1) if environment.get("SOURCE_DATE_EPOCH") else None


class UploadTimes(msgspec.Struct, frozen=True):
    """Which dates the files of an index get; all in microseconds since 1970."""

    now: int
    given: int | None = None
    """For all that are new."""

    def is_future(self, time: int) -> bool:
        """Return whether a clock that was right can't have given this date, nor can the user have."""
        return time > self.now and time != self.given

    def choose(self, earlier: int | None, changed: int) -> int:
        """Return the date of a file that was listed with an ``earlier`` one, if any, and was last ``changed`` then."""
        if earlier is not None and not self.is_future(earlier):
            return earlier
        return self.given if self.given is not None else min(max(changed, 0), self.now)


class _File(msgspec.Struct, frozen=True):
    filename: str
    hashes: dict[str, str]
    upload_time: str = msgspec.field(name="upload-time")


class _Project(msgspec.Struct, frozen=True):
    files: tuple[_File, ...]


def read_times(folder: Path) -> dict[tuple[str, str], int]:
    """Return the dates that the page of a project gives, by file name and sha256; none for a page that is damaged."""
    found: dict[tuple[str, str], int] = {}
    try:
        files = decode_json(read_regular(folder / "index.json"), _Project).files
    except (OSError, msgspec.DecodeError):
        return {}
    for file in files:
        with suppress(InputError):
            found[file.filename, file.hashes.get("sha256", "")] = parse_time(file.upload_time)
    return found


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
    """Return the page that lists the projects, by normalized name.

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


class VariantsFile(msgspec.Struct, frozen=True):
    """A file beside the pages of a project, which list it like a distribution."""

    entry: IndexEntry
    data: bytes
    variants: dict[str, tuple[str, ...]]
    """The properties of each variant, as the draft spells them, by label."""


def make_variants_files(
    projects: Mapping[str, Sequence[IndexEntry]], machine: Sequence[str], *, may_lack: bool = False
) -> dict[str, list[VariantsFile]]:
    """Return the files of the projects that have variant wheels, by version; of others nothing.

    ``machine`` are the targets of the machines that the index is for; empty where each machine has to be asked. With
    targets there have to be variants, unless the index ``may_lack`` them, as one of several families. Raises
    `InputError` for variant wheels of a version that contradict one another; `ProblemsError` for several.
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
        found = f"is asked for {', '.join(machine)}, and there are no variant wheels"
        problems.append(InputError("--variants-for", found, remedy="Make them with --variants."))
    raise_all("variant wheels", problems)
    return made


def _parse(entry: IndexEntry) -> VariantMetadata:
    return parse_metadata(entry.variant.encode(), source=entry.filename, label=entry.label)


def _describe_variants(name: str, wheels: Sequence[IndexEntry], data: bytes) -> IndexEntry:
    """Return how a page lists the file, dated as the newest of its wheels is.

    It changes under its name when a variant comes. So no page promises its hash, which would be wrong to whoever has
    read the page before and reads the file after.
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
