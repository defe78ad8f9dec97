"""One index on a store: what is published, what joins it, and in which order its pages change."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError, ProblemsError, each_problem
from rocwheel.core.workers import attempt_all, open_workers
from rocwheel.index.pages import group_by_project
from rocwheel.index.published import Published, RootPage, merge
from rocwheel.index.store_notes import NoteUpdate
from rocwheel.index.store_pages import FrontPage, Pages
from rocwheel.index.uploads import AT_ONCE
from rocwheel.index.write_index import IndexReport
from rocwheel.stores.store import StoreError
from rocwheel.stores.urls import is_url, make_address
from rocwheel.wheels.names import parse_file_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rocwheel.core.errors import RocwheelError
    from rocwheel.core.progress import Progress
    from rocwheel.index.entry import IndexEntry
    from rocwheel.index.extra_files import NextExtras
    from rocwheel.index.upload_times import UploadTimes
    from rocwheel.index.uploads import Place, Upload
    from rocwheel.index.yanked import Yanking


class OneIndex:
    """The work on one index.

    Making it reads what the pages list and changes nothing; what is wrong with them goes to ``problems``.
    """

    def __init__(
        self, place: Place, uploads: Sequence[Upload], make_front: NextExtras | None, problems: list[RocwheelError]
    ) -> None:
        store, layout, stored = place.store, place.layout, place.stored
        self._place = place
        self._bases = {one.entry.filename: layout.base(layout.file(one.name)) for one in uploads}
        self.projects = group_by_project(one.entry for one in uploads)
        """The files that are to be listed."""
        self._pages = Pages(store, layout, stored, place.notes_file.notes.projects)
        self._root = RootPage(store, layout, stored, place.notes_file.notes.projects)
        listed = attempt_all(RootPage.read, [self._root], problems)
        self.listed = self.projects.keys() | {name for names in listed for name in names}
        """All projects that it has or will have."""
        fronts = [make_front] if make_front else []
        made = attempt_all(lambda make: FrontPage(place, make), fronts, problems)
        self._front = made[0] if made else None
        read = self._read_all(self.projects, problems)
        self.published: dict[str, Published] = dict(zip(self.projects, read, strict=True))
        """What was listed before, by project."""
        if self._front:
            others = [name for name in sorted(self.listed - self.projects.keys()) if not self._pages.is_noted(name)]
            self._read_all(others, [])  # where they are broken, that is for others to mend
        attempt_all(self._check, self.projects, problems)

    @property
    def edited(self) -> list[str]:
        """The places of pages that somebody had edited, and that were written again."""
        return [*self._pages.edited, *self._root.edited, *(self._front.edited if self._front else ())]

    def known(self) -> dict[str, str]:
        """Return the hashes of what is listed, by the names of the files on the store."""
        found = {}
        for project, published in self.published.items():
            folder = posixpath.join("/", self._place.layout.index, project)
            for name, entry in published.entries.items():
                path = posixpath.normpath(posixpath.join(folder, published.bases[name], name))
                found[path.lstrip("/")] = entry.sha256
        return found

    def new(self) -> set[str]:
        """Return the names of the files that were not listed before."""
        return {
            entry.filename
            for project, entries in self.projects.items()
            for entry in entries
            if entry.filename not in self.published[project].entries
        }

    def write(self, dated: Mapping[str, Sequence[IndexEntry]], times: UploadTimes, progress: Progress) -> set[str]:
        """Write the pages of projects, then that of all, and the front page; return the projects whose pages changed.

        ``dated`` are the files by project with the dates of new ones; ``times`` are by the clock of the store.
        """
        self._pages.times = times
        waiting = {project: entries for project, entries in dated.items() if not self._pages.stand(project, entries)}
        progress.begin("writing pages", len(waiting))
        changed = set()

        def add(item: tuple[str, Sequence[IndexEntry]]) -> bool:
            return self._pages.add(*item, self._bases)

        with open_workers(AT_ONCE) as executor:
            for project, has_changed in zip(waiting, executor.map(add, waiting.items()), strict=True):
                changed |= {project} if has_changed else set()
                progress.advance(1)
        self._root.add(dated, self._place.families, has_front_page=self._front is not None)
        self._finish(dated)
        progress.end()
        return changed

    def find(self, projects: Mapping[str, set[str]]) -> dict[str, tuple[str, ...]]:
        """Return those of the names of each project's files that its page lists, and the address of each."""
        return {
            name: (self._address(project, f"{published.bases[name]}{name}"),)
            for project in projects.keys() & self.listed
            for published in [self._pages.read(project)]
            for name in published.entries.keys() & projects[project]
        }

    def _address(self, project: str, link: str) -> str:
        if is_url(link):
            return make_address(link)
        page = posixpath.join(self._place.store.url, self._place.layout.index, project)
        return make_address(posixpath.join(page, link))

    def mark(self, yanking: Yanking) -> IndexReport:
        """Change the marks of files that pages list, and return what the pages of their projects list now."""
        names = (*yanking.yanked, *yanking.unyanked)
        projects = sorted({parse_file_name(name).project for name in names})
        marked = {project: self._pages.mark(project, yanking) for project in projects}
        self._finish({})
        output = self._place.store.place(self._place.layout.index)
        listed = {project: list(published.entries) for project, published in marked.items()}
        yanked = {name: reason for one in marked.values() for name, reason in one.yanked.items()}
        return IndexReport(output, listed, (), (), yanked, edited=tuple(self.edited))

    def show(self) -> None:
        """Bring the front page up to date with the indexes of families below."""
        if self._place.families:
            self._finish({})

    def _finish(self, entries: Mapping[str, Sequence[IndexEntry]]) -> None:
        """Note what there is now, and then show it."""
        place, notes_file = self._place, self._place.notes_file
        # Noted projects had pages; where the store lists none any more, somebody has removed them.
        gone = {name for name in notes_file.notes.projects if place.layout.page(name, "json") not in place.stored}
        about = {one.filename: (one.sha256, one.about) for some in entries.values() for one in some}
        news = NoteUpdate(self._pages.noted, about, gone - entries.keys())
        notes = notes_file.add(news, self._pages.read_again)
        if self._front:
            self._front.write(notes_file, notes)

    def _read_all(self, projects: Iterable[str], problems: list[RocwheelError]) -> list[Published]:
        def read(project: str) -> Published:
            try:
                return self._pages.read(project)
            except StoreError:  # as it would fail for every other page
                raise
            except (InputError, ProblemsError) as e:
                problems.extend(each_problem([e]))
                return Published()

        with open_workers(AT_ONCE) as executor:
            return list(executor.map(read, projects))

    def _check(self, project: str) -> Published:
        place = self._place.store.place(self._place.layout.page(project, "json"))
        return merge(place, self.published[project], self.projects[project], self._bases)
