"""What a project's page on a store lists, and what it lists together with new files."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.core.workers import raise_all
from rocwheel.distributions.formats.digests import is_sha256
from rocwheel.distributions.index.entries.entry import IndexEntry
from rocwheel.distributions.index.entries.file_name import parse_file_name
from rocwheel.distributions.index.pages.simple_pages import Page, group_by_project, is_absolute, make_project_page
from rocwheel.distributions.index.pages.upload_times import parse_time
from rocwheel.distributions.index.planning.yanked import yanked_in_html, yanked_in_json
from rocwheel.distributions.variants.index_file import is_index_file_name
from rocwheel.stores.urls import leads_to_web

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rocwheel.distributions.index.pages.upload_times import UploadTimes
    from rocwheel.distributions.index.planning.yanked import Yanking

__all__ = ["MEND", "BrokenPageError", "Published", "merge", "parse_project"]

_DAY = 86_400 * 1_000_000
"""In microseconds."""
MEND = "Put it back from a copy, or mend it by its index.html: without it, files and marks of others are lost."
"""What to do about a page that can't be used."""


class BrokenPageError(InputError):
    """A page in JSON that is cut off, missing beside its HTML form, or of another shape."""


class _File(msgspec.Struct, frozen=True, rename="kebab"):
    filename: str
    url: str
    hashes: dict[str, str]
    size: int
    upload_time: str
    requires_python: str | None = None
    core_metadata: bool | dict[str, str] = False
    yanked: bool | str | None = None


class _Project(msgspec.Struct, frozen=True):
    name: str
    files: tuple[_File, ...]


class Published(msgspec.Struct, frozen=True):
    """What a page lists."""

    entries: dict[str, IndexEntry] = {}
    """By file name."""
    bases: dict[str, str] = {}
    """What leads from the page to each file, by name: empty, or ending in a slash."""
    yanked: dict[str, str] = {}
    """Reasons of what is yanked, by file name, empty for none."""
    unyanked: frozenset[str] = frozenset()
    """Names of files of which the JSON page says that they are not, so that no mark in the HTML page counts."""

    def render(self, project: str) -> Page:
        """Return the project's page."""
        marks = {**dict.fromkeys(self.unyanked), **self.yanked}
        return make_project_page(project, group_by_project(self.entries.values())[project], self.bases, marks)

    def mark(self, yanking: Yanking) -> Published:
        """Return the page with new marks, as far as they are for files that it lists."""
        yanked = {name: why for name, why in yanking.yanked.items() if name in self.entries}
        unyanked = self.entries.keys() & set(yanking.unyanked)
        return msgspec.structs.replace(
            self,
            yanked={name: why for name, why in {**self.yanked, **yanked}.items() if name not in unyanked},
            unyanked=(self.unyanked | unyanked) - yanked.keys(),
        )

    def correct(self, times: UploadTimes) -> Published:
        """Return the same with the present date for files of the future: a day ahead or more, and not given.

        They were dated by a clock that was wrong. The clocks of those who publish may differ by less.
        """
        ahead = [entry for entry in self.entries.values() if entry.upload_time >= times.now + _DAY]
        wrong = [entry for entry in ahead if times.is_future(entry.upload_time)]
        entries = {one.filename: msgspec.structs.replace(one, upload_time=times.now) for one in wrong}
        return msgspec.structs.replace(self, entries={**self.entries, **entries})

    def settle(self, names: Iterable[str]) -> Published:
        """Return the same, where marks of these files in the HTML page, which has none, count again."""
        return msgspec.structs.replace(self, unyanked=self.unyanked.difference(names))


def parse_project(place: str, project: str, json: bytes, html: bytes) -> Published:
    """Return what the pages of a project list; the JSON has it, and marks of yanked files count in both forms.

    Somebody may have edited them: raises `InputError` about ``place`` for what installers could not use,
    `BrokenPageError` where nothing of the JSON can be read.
    """
    try:
        page = decode_json(json, _Project)
        if page.name != project:
            raise InputError(place, f"is the page of {page.name!r}", expected=project, remedy=MEND)
        entries = {file.filename: _usable_entry(place, project, file) for file in page.files}
    except msgspec.DecodeError as e:
        raise BrokenPageError(place, f"can't be read as a page of the index ({e})", remedy=MEND) from e
    bases = {file.filename: _base(file.url) for file in page.files}
    marks = yanked_in_json(json)
    unyanked = frozenset(file.filename for file in page.files if file.yanked is False)
    beside = {name: why for name, why in yanked_in_html(html).items() if name in entries.keys() - unyanked}
    return Published(entries, bases, {**beside, **marks}, unyanked)


def _base(url: str) -> str:
    """Return what leads from the page to the folder of a file, as `make_project_page` takes it."""
    folder = url[: url.rfind("/") + 1]
    return folder if is_absolute(folder) else unquote(folder)


def _usable_entry(place: str, project: str, file: _File) -> IndexEntry:
    try:
        return _entry(place, project, file)
    except InputError as e:
        if e.source == place:
            raise
        found = f"lists {quoted(file.filename)}, of which something can't be read ({e.found})"
        raise InputError(place, found, expected=e.expected, remedy=MEND) from e


def _entry(place: str, project: str, file: _File) -> IndexEntry:
    if is_index_file_name(file.filename):
        return _variants_entry(place, project, file)
    name = parse_file_name(file.filename)
    if fault := _find_fault(file, is_foreign=name.project != project):
        raise InputError(place, f"has {fault} for {file.filename}", remedy=MEND)
    return IndexEntry(
        filename=file.filename,
        project=project,
        version=str(name.version),
        identity=name.identity,
        size=file.size,
        sha256=file.hashes["sha256"],
        requires_python=file.requires_python,
        metadata_sha256=file.core_metadata.get("sha256") if isinstance(file.core_metadata, dict) else None,
        upload_time=parse_time(file.upload_time),
        label=name.label,
    )


def _find_fault(file: _File, *, is_foreign: bool) -> str | None:
    """Return what is wrong with a file that a page lists, if anything is."""
    faults = {
        "the name of another project": is_foreign,
        "a URL that ends in another name": unquote(file.url.rpartition("/")[2]) != file.filename,
        "an address that is not of the web": not leads_to_web(file.url),
        "no sha256": not is_sha256(file.hashes.get("sha256", "")),
        "a negative size": file.size < 0,
    }
    return next((fault for fault, is_there in faults.items() if is_there), None)


def _variants_entry(place: str, project: str, file: _File) -> IndexEntry:
    """Return the entry of a file that lists the variants (a draft) of a version: its bytes may change."""
    stem, _, version = file.filename.partition("-")
    if canonicalize_name(stem) != project or file.url != quote(file.filename):
        raise InputError(place, f"has a place for {file.filename} that is not beside the page", remedy=MEND)
    return IndexEntry(
        filename=file.filename,
        project=project,
        version=str(parse_file_name(f"{stem}-{version.partition('-')[0]}.tar.gz").version),
        identity=file.filename,
        size=file.size,
        sha256="",
        requires_python=None,
        metadata_sha256=None,
        upload_time=parse_time(file.upload_time),
    )


def merge(place: str, published: Published, new: Iterable[IndexEntry], bases: Mapping[str, str]) -> Published:
    """Return what is published together with new files, to which ``bases`` lead by their names; what is there stays.

    Raises `InputError`, or `ProblemsError`, for a file of another content than the published one of its name, and for
    one that is the same distribution as a published one of another name.
    """
    added = list(new)
    raise_all(place, list(_conflicts(place, published, added)))
    fresh = {entry.filename: entry for entry in added if _is_news(entry, published.entries.get(entry.filename))}
    # What lists variants lies beside the page.
    added_bases = {name: bases[name] if entry.sha256 else "" for name, entry in fresh.items()}
    entries, bases = {**published.entries, **fresh}, {**published.bases, **added_bases}
    return msgspec.structs.replace(published, entries=entries, bases=bases)


def _is_news(entry: IndexEntry, there: IndexEntry | None) -> bool:
    """Return whether a page has to change for a file: it lacks it, or has another size of one that may change."""
    return there is None or (not entry.sha256 and entry.size != there.size)


def _conflicts(place: str, published: Published, new: Iterable[IndexEntry]) -> Iterator[InputError]:
    names = {entry.identity: entry.filename for entry in published.entries.values()}
    remedy = "Give it another version or build number."
    for entry in new:
        there = published.entries.get(entry.filename)
        if there and there.sha256 != entry.sha256:
            found = (
                f"lists {entry.filename} with other bytes (sha256 {there.sha256[:16]}..., not {entry.sha256[:16]}...)"
            )
            yield InputError(place, found, expected="the same file", remedy=f"A file is never replaced. {remedy}")
        elif names.get(entry.identity, entry.filename) != entry.filename:
            found = f"lists the distribution {entry.filename} under the name {names[entry.identity]}"
            yield InputError(place, found, remedy=remedy)
