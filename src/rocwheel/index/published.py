"""The contents of a project's page in a store, in both formats, which can be merged with new files."""

from __future__ import annotations

import posixpath
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.core.workers import raise_all
from rocwheel.index.entry import IndexEntry
from rocwheel.index.pages import (
    FRONT_PAGE,
    Page,
    decode_html_page,
    decode_json_page,
    families_in_root_page,
    group_by_project,
    is_absolute,
    is_project_page,
    is_root_page,
    is_sha256,
    make_project_page,
    make_root_page,
    projects_in_root_page,
)
from rocwheel.index.store_notes import NOTHING, First, Noted, load, swap, until_done
from rocwheel.index.upload_times import DAY, parse_time
from rocwheel.index.uploads import Layout
from rocwheel.index.yanked import yanked_among, yanked_in_html, yanked_in_json
from rocwheel.stores.store import LoadedFile, MissingFileError, OutdatedError
from rocwheel.stores.urls import leads_to_web
from rocwheel.wheels.file_names import parse_file_name
from rocwheel.wheels.variants import is_index_file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from rocwheel.index.pages import RawFile
    from rocwheel.index.upload_times import UploadTimes
    from rocwheel.index.yanked import Yanking
    from rocwheel.stores.store import Store, StoredFile


_END = b"</body>\n</html>\n"


class _Read(msgspec.Struct, frozen=True):
    projects: frozenset[str]
    json: LoadedFile
    html: LoadedFile


class RootPage:
    """The page of all projects.

    ``stored`` lists the index files in the store. ``noted`` contains the projects that were recorded in the notes
    before the files were listed. Publishers note a project after both formats of the page list it.
    """

    def __init__(self, store: Store, layout: Layout, stored: Collection[str], noted: Collection[str]) -> None:
        self._store = store
        self._layout = layout
        self._stored = stored
        self._noted = frozenset(noted)
        self._first = First(None)
        self.edited: list[str] = []
        """The locations of pages that were rewritten because no publisher had written them in this form."""

    def read(self) -> frozenset[str]:
        """Return the listed projects. Raise `InputError` for a damaged page or a page from another program."""
        is_there = any(self._layout.page("", form) in self._stored for form in ("html", "json"))
        read = self._load() if is_there else _Read(frozenset(), NOTHING, NOTHING)
        self._first = First(read)
        return read.projects

    def add(self, projects: Iterable[str], families: Collection[str] = (), *, has_front_page: bool) -> bool:
        """Add projects and references to a front page and to the indexes of ``families`` below this index.

        Existing references stay. Return whether the page has changed in either format.
        """
        names = frozenset(projects)
        before = until_done(lambda: self._add_json(names))
        self._first = First(before[1])
        is_new = until_done(lambda: self._follow_html(families, has_front_page=has_front_page))
        return before[0] or is_new

    def _add_json(self, names: frozenset[str]) -> tuple[bool, _Read]:
        read = self._first.take(self._load)
        listed = read.projects | names
        json = swap(self._store, self._layout.page("", "json"), make_root_page(listed).json, read.json)
        is_whole = _has_left_json(read.json.data) and not self._noted & names - read.projects
        if json is not read.json and read.json is not NOTHING and not is_whole:
            self.edited.append(self._place("json"))
        return json is not read.json, _Read(listed, json, read.html)

    def _follow_html(self, families: Collection[str], *, has_front_page: bool) -> bool:
        read = self._first.take(self._load)
        has_way = has_front_page or FRONT_PAGE.encode() in read.html.data
        # The page lists a project that is not known: another publisher just added it, or someone removed it.
        others = [
            name
            for name in families_in_root_page(read.html.data) - {*families}
            if load(self._store, self._layout.of_family(name).page("", "html")).data
        ]
        page = make_root_page(read.projects, has_front_page=has_way, families=sorted([*families, *others])).html
        has_changed = swap(self._store, self._layout.page("", "html"), page, read.html) is not read.html
        gone = self._noted & read.projects - projects_in_root_page(read.html.data)
        if has_changed and read.html is not NOTHING and (gone or not _has_left_html(read.html.data)):
            self.edited.append(self._place("html"))
        return has_changed

    def _load(self) -> _Read:
        html = load(self._store, self._layout.page("", "html"))
        json = load(self._store, self._layout.page("", "json"))
        projects = _projects(json.data)
        is_begun = projects is not None and make_root_page(()).html.startswith(html.data)
        require_own(self._place("html"), is_own=not html.data or is_root_page(html.data) or is_begun)
        if projects is None and (json.data or html.data):
            # The list of projects in the HTML page may be older than the list in the JSON page.
            if not (is_root_page(html.data) and html.data.endswith(_END)):
                found = "can't be read as the page of all projects, nor can index.html next to it"
                raise InputError(self._place("json"), found, remedy="Restore one of the two pages.")
            projects = projects_in_root_page(html.data)
        return _Read(projects or frozenset(), json, html)

    def _place(self, form: str) -> str:
        return self._store.place(self._layout.page("", form))


def _projects(json: bytes) -> frozenset[str] | None:
    """Return the projects in a JSON page, or `None` for other data."""
    try:
        page = decode_json_page(json)
    except msgspec.DecodeError:
        return None
    return frozenset(page.projects) if page.has_projects else None


def _has_left_json(json: bytes) -> bool:
    """Return whether a publisher may have written this JSON page, because it equals a generated page."""
    projects = _projects(json)
    return projects is not None and make_root_page(projects).json == json


def _has_left_html(html: bytes) -> bool:
    """Return whether a publisher may have written this HTML page."""
    families = sorted(families_in_root_page(html))
    has_front = FRONT_PAGE.encode() in html
    return make_root_page(projects_in_root_page(html), has_front_page=has_front, families=families).html == html


def has_root_page(store: Store, folder: str = "") -> bool:
    """Return whether a folder of the store has a page of all projects from rocwheel. The notes need not exist."""
    return is_root_page(load(store, Layout(folder).page("", "html")).data)


def require_own(place: str, *, is_own: bool) -> None:
    """Raise `InputError` for a page that no publisher wrote."""
    if not is_own:
        remedy = "Choose the folder of another index with --output, or remove the page."
        raise InputError(place, "is a page that this command did not write", remedy=remedy)


MEND = (
    "Restore the page from a copy, or repair it from its index.html. Without the page, files and marks from other "
    "publishers are lost."
)
"""The remedy for a page that can't be used."""


class BrokenPageError(InputError):
    """A JSON page is truncated, malformed, or missing next to its HTML page. An entry may lack a field."""


class Published(msgspec.Struct, frozen=True):
    """The contents of a project's page."""

    entries: dict[str, IndexEntry] = {}
    """The files, keyed by name."""
    bases: dict[str, str] = {}
    """The relative path from the page to the folder of each file, which is empty or ends with a slash."""
    yanked: dict[str, str] = {}
    """The reasons for yanking files, keyed by file name. A reason may be empty."""
    unyanked: frozenset[str] = frozenset()
    """The names of files that the JSON page lists as not yanked.

    For these files, marks in the HTML page are ignored.
    """

    def render(self, project: str) -> Page:
        """Return the project's page."""
        marks = {**dict.fromkeys(self.unyanked), **self.yanked}
        return make_project_page(project, group_by_project(self.entries.values())[project], self.bases, marks)

    def mark(self, yanking: Yanking) -> Published:
        """Return the page with new yank marks for the files that it lists."""
        yanked = {name: why for name, why in yanking.yanked.items() if name in self.entries}
        unyanked = self.entries.keys() & set(yanking.unyanked)
        return msgspec.structs.replace(
            self,
            yanked={name: why for name, why in {**self.yanked, **yanked}.items() if name not in unyanked},
            unyanked=(self.unyanked | unyanked) - yanked.keys(),
        )

    def correct(self, times: UploadTimes) -> Published:
        """Return the page with corrected dates: a date that is a day or more in the future becomes the current date.

        A wrong clock caused these dates. Dates that the user specified remain. The clocks of publishers may differ by
        less than a day.
        """
        ahead = [entry for entry in self.entries.values() if entry.upload_time >= times.now + DAY]
        wrong = [entry for entry in ahead if times.is_future(entry.upload_time)]
        entries = {one.filename: msgspec.structs.replace(one, upload_time=times.now) for one in wrong}
        return msgspec.structs.replace(self, entries={**self.entries, **entries})

    def settle(self, names: Iterable[str]) -> Published:
        """Return the page with HTML yank marks enabled again for these files, whose old marks were removed."""
        return msgspec.structs.replace(self, unyanked=self.unyanked.difference(names))


def parse_project(place: str, project: str, json: bytes, html: bytes) -> Published:
    """Return the contents of a project's page: the files in the JSON page, and the yank marks in both formats.

    Someone may have edited the pages. Raises `InputError` about ``place`` for data that installers could not use, and
    `BrokenPageError` if the JSON page is unreadable.
    """
    try:
        page = decode_json_page(json)
    except msgspec.DecodeError as e:
        raise BrokenPageError(place, f"can't be read as a page of the index ({e})", remedy=MEND) from e
    if page.name is None or not page.has_files:
        raise BrokenPageError(place, "can't be read as a page of the index (it lacks a name or files)", remedy=MEND)
    if page.name != project:
        raise InputError(place, f"is the page of {page.name!r}", expected=project, remedy=MEND)
    published = _list_files(place, project, page.files)
    listed = published.entries.keys() - published.unyanked
    beside = {name: why for name, why in yanked_in_html(html).items() if name in listed}
    return msgspec.structs.replace(published, yanked={**beside, **published.yanked})


def _list_files(place: str, project: str, files: Collection[RawFile]) -> Published:
    return Published(
        {file.filename: _usable_entry(place, project, file) for file in files},
        {file.filename: _base(file.url) for file in files},
        yanked_among(files),
        frozenset(file.filename for file in files if file.yanked is False),
    )


def _base(url: str) -> str:
    """Return the relative path from the page to the folder of a file, as `make_project_page` uses it."""
    folder = url[: url.rfind("/") + 1]
    return folder if is_absolute(folder) else unquote(folder)


def _usable_entry(place: str, project: str, file: RawFile) -> IndexEntry:
    has_hashes = bool(file.hashes) or is_index_file_name(file.filename)
    if file.size is None or file.upload_time is None or not has_hashes:
        missing = "size" if file.size is None else "upload-time" if file.upload_time is None else "hashes"
        found = f"can't be read as a page of the index ({quoted(file.filename)} has no {missing})"
        raise BrokenPageError(place, found, remedy=MEND)
    try:
        return _entry(place, project, file, file.size, parse_time(file.upload_time))
    except InputError as e:
        if e.source == place:
            raise
        found = f"lists {quoted(file.filename)} with unreadable data ({e.found})"
        raise InputError(place, found, expected=e.expected, remedy=MEND) from e


def _entry(place: str, project: str, file: RawFile, size: int, upload_time: int) -> IndexEntry:
    if is_index_file_name(file.filename):
        return _variants_entry(place, project, file, size, upload_time)
    name = parse_file_name(file.filename)
    # These are the possible faults of a listed file.
    faults = {
        "a project name that doesn't match": name.project != project,
        "a URL that ends with another name": unquote(file.url.rpartition("/")[2]) != file.filename,
        "a URL that is not a web URL": not leads_to_web(file.url),
        "no sha256": not is_sha256(file.hashes.get("sha256", "")),
        "a negative size": size < 0,
    }
    if fault := next((fault for fault, is_there in faults.items() if is_there), None):
        raise InputError(place, f"has {fault} for {file.filename}", remedy=MEND)
    return IndexEntry(
        filename=file.filename,
        project=project,
        version=str(name.version),
        identity=name.identity,
        size=size,
        sha256=file.hashes["sha256"],
        requires_python=file.requires_python,
        metadata_sha256=file.core_metadata.get("sha256") if isinstance(file.core_metadata, dict) else None,
        upload_time=upload_time,
        label=name.label,
    )


def _variants_entry(place: str, project: str, file: RawFile, size: int, upload_time: int) -> IndexEntry:
    """Return the entry of a file that lists a version's variants (a draft). The file's bytes may change."""
    stem, _, version = file.filename.partition("-")
    if canonicalize_name(stem) != project or file.url != quote(file.filename):
        raise InputError(place, f"lists {file.filename} at a location that is not next to the page", remedy=MEND)
    return IndexEntry(
        filename=file.filename,
        project=project,
        version=str(parse_file_name(f"{stem}-{version.partition('-')[0]}.tar.gz").version),
        identity=file.filename,
        size=size,
        sha256="",
        requires_python=None,
        metadata_sha256=None,
        upload_time=upload_time,
    )


def merge(place: str, published: Published, new: Iterable[IndexEntry], bases: Mapping[str, str]) -> Published:
    """Return the published contents merged with new files. Existing entries stay.

    ``bases`` contains the path to the folder of each new file, keyed by name. Raises `InputError` or `ProblemsError`
    for a file whose contents differ from the published file with the same name. Raises the same errors for a
    distribution that is published under another file name.
    """
    added = list(new)
    raise_all(place, list(_conflicts(place, published, added)))
    fresh = {entry.filename: entry for entry in added if _is_news(entry, published.entries.get(entry.filename))}
    # A list of variants is next to the page.
    added_bases = {name: bases[name] if entry.sha256 else "" for name, entry in fresh.items()}
    entries, bases = {**published.entries, **fresh}, {**published.bases, **added_bases}
    return msgspec.structs.replace(published, entries=entries, bases=bases)


def _is_news(entry: IndexEntry, there: IndexEntry | None) -> bool:
    """Return whether a page must change for a file: the file is new, or it has no fixed hash and its size changed."""
    return there is None or (not entry.sha256 and entry.size != there.size)


def _conflicts(place: str, published: Published, new: Iterable[IndexEntry]) -> Iterator[InputError]:
    names = {entry.identity: entry.filename for entry in published.entries.values()}
    remedy = "Use a different version or build number."
    for entry in new:
        there = published.entries.get(entry.filename)
        if there and there.sha256 != entry.sha256:
            hashes = f"sha256 {there.sha256[:16]}..., not {entry.sha256[:16]}..."
            found = f"lists {entry.filename} with different bytes ({hashes})"
            yield InputError(place, found, expected="the same bytes", remedy=f"Files are never replaced. {remedy}")
        elif names.get(entry.identity, entry.filename) != entry.filename:
            found = f"lists the distribution {entry.filename} under the name {names[entry.identity]}"
            yield InputError(place, found, remedy=remedy)


def read_html_form(project: str, html: bytes, size_of: Callable[[str, str], int]) -> Published | None:
    """Return the contents of a page from `make_project_page`, or `None` for a truncated or edited page.

    ``size_of`` returns the size of a file. Its arguments are the relative path from the page to the file's folder, and
    the file's name.
    """
    files = [
        msgspec.structs.replace(file, filename=unquote(file.url.rpartition("/")[2]), size=0)
        for file in decode_html_page(html).files
    ]
    try:
        found = _list_files("index.html", project, files)
    except InputError:
        return None
    if not found.entries or found.render(project).html != html:
        return None
    entries = {
        name: msgspec.structs.replace(entry, size=size_of(found.bases[name], name))
        for name, entry in found.entries.items()
    }
    return msgspec.structs.replace(found, entries=entries)


class ReadPages(msgspec.Struct, frozen=True):
    """The pages of a project at one point in time."""

    published: Published
    json: LoadedFile
    html: LoadedFile

    def note(self, project: str) -> Noted | None:
        """Return the note about the pages, or `None` if the two formats differ or the store has no tags."""
        if self.json.e_tag is None or self.html.e_tag is None:
            return None
        if Page(self.html.data, self.json.data) != self.published.render(project):
            return None
        return Noted.of(project, (self.json.e_tag, self.html.e_tag), self.json.data.decode(), self.html.data)


class PageReader:
    """Reads the pages of an index.

    ``stored`` lists its files, and ``noted`` contains the notes from before the files were listed.
    """

    def __init__(
        self, store: Store, layout: Layout, stored: Mapping[str, StoredFile], noted: Mapping[str, Noted]
    ) -> None:
        self._store = store
        self._layout = layout
        self._stored = stored
        self._noted = noted

    def is_noted(self, project: str) -> bool:
        """Return whether the pages match their note, so that they don't need to be read."""
        noted = self._noted.get(project)
        return noted is not None and noted.tags == tuple(self._tag(project, form) for form in ("json", "html"))

    def find(self, project: str) -> ReadPages | None:
        """Return the pages if no request is needed, because they match their note or don't exist."""
        tags = [self._tag(project, form) for form in ("json", "html")]
        if not any(self._layout.page(project, form) in self._stored for form in ("json", "html")):
            return ReadPages(Published(), NOTHING, NOTHING)
        if not self.is_noted(project):
            return None
        json = LoadedFile(self._noted[project].page.encode(), tags[0])
        published = self._parse(project, json, NOTHING)
        page = published.render(project)
        # A different version of rocwheel may generate different pages for the same files.
        is_same = page.json == json.data and self._noted[project].has_left_html(page.html)
        return ReadPages(published, json, LoadedFile(page.html, tags[1])) if is_same else None

    def _tag(self, project: str, form: str) -> str | None:
        stored = self._stored.get(self._layout.page(project, form))
        return stored.e_tag if stored else None

    def load(self, project: str) -> ReadPages:
        """Return the current pages of a project. Raises the problems with the pages."""
        return until_done(partial(self._load_once, project))

    def _load_once(self, project: str) -> ReadPages:
        """Return both pages.

        Raise `OutdatedError` if the HTML page has additional yank marks and has changed in the meantime.

        Between reading the HTML page and reading the JSON page, someone may have removed the marks.
        """
        found = self._load_both(project)
        if found.published.yanked != yanked_in_json(found.json.data):
            name = self._layout.page(project, "html")
            if load(self._store, name) != found.html:
                raise OutdatedError(self._store.place(name), "was changed while it was being read", remedy="Try again.")
        return found

    def _load_both(self, project: str) -> ReadPages:
        html = load(self._store, self._layout.page(project, "html"))
        json = load(self._store, self._layout.page(project, "json"))
        if not (html.data or json.data):
            return ReadPages(Published(), json, html)
        is_own = not html.data or is_project_page(html.data) or self._is_begun(project, json, html)
        require_own(self.place(project, "html"), is_own=is_own)
        return ReadPages(self._parse(project, json, html), json, html)

    def _is_begun(self, project: str, json: LoadedFile, html: LoadedFile) -> bool:
        """Return whether an HTML page is a truncated copy of the HTML page that belongs to the JSON page."""
        try:
            published = parse_project(self.place(project, "json"), project, json.data, b"")
        except InputError:
            return False
        return bool(published.entries) and published.render(project).html.startswith(html.data)

    def _parse(self, project: str, json: LoadedFile, html: LoadedFile) -> Published:
        """Return the contents of the JSON page.

        If it is unreadable, use the HTML page, provided that it is complete.
        """
        place = self.place(project, "json")
        try:
            if not json.data:
                raise BrokenPageError(place, "is missing next to index.html, or empty", remedy=MEND)
            return parse_project(place, project, json.data, html.data)
        except BrokenPageError:
            if found := self._restore(project, html.data):
                return found
            raise

    def _restore(self, project: str, html: bytes) -> Published | None:
        """Return the contents of an unedited HTML page that contains all noted files."""
        noted, place = self._noted.get(project), self.place(project, "json")
        listed = parse_project(place, project, noted.page.encode(), html) if noted else Published()
        if noted and noted.has_left_html(html):
            return listed
        found = read_html_form(project, html, partial(self._size, project))
        return found if found and listed.entries.keys() <= found.entries.keys() else None

    def _size(self, project: str, base: str, filename: str) -> int:
        """Return the size of a listed file. Raise `InputError` if the store doesn't have the file."""
        place, found = self.place(project, "json"), f"is broken, and the size of {filename} is not available"
        if is_absolute(base):
            raise InputError(place, f"{found}, because it is on another server", remedy=MEND)
        name = posixpath.normpath(posixpath.join("/", self._layout.index, project, base, filename))
        try:
            return self._store.head(name.lstrip("/")).size
        except MissingFileError as e:
            raise InputError(place, f"{found}, because it is gone from the store", remedy=MEND) from e

    def place(self, project: str, form: str) -> str:
        """Return the URL of a page, in the form in which messages show it. ``form`` is the format."""
        return self._store.place(self._layout.page(project, form))
