"""Writes one index for each GPU family. It lists the shared distributions and the distributions in the family's folder.

The packages of several families can have the same names, so a single index can't list them all. They are in folders
below the folder of the shared distributions. Similarly, their indexes are below the main index.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError, RocwheelError, WorkError, each_problem
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import read_regular
from rocwheel.core.workers import raise_all
from rocwheel.index.extra_files import Extras, no_extras, remove_stale_extras
from rocwheel.index.folder import find_families, folder_names, list_names, require_addresses
from rocwheel.index.folder_notes import KNOWN_NAME, NOTES, read_families, read_known, remove_notes, write_families
from rocwheel.index.pages import FRONT_PAGE, PAGES, is_root_page
from rocwheel.index.placing import FilePlacement, read_previous, remove_stale
from rocwheel.index.write_index import IndexOptions, WriteFamilies, WrittenIndex, locked_index, write_locked_index
from rocwheel.index.yanked import KEEP_YANKED, Yanking, share_yanking

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rocwheel.index.extra_files import IndexContent
    from rocwheel.index.folder_notes import KnownIndex
    from rocwheel.index.write_index import IndexReport


def find_groups(dist_dirs: Sequence[Path], output: Path) -> dict[str, tuple[Path, ...]]:
    """Return the folders of each index. For a family, these are the shared folders and the family's own folders.

    The main index has an empty name. A family folder that is specified as a separate index is omitted. Raises
    `InputError` for a folder name that can't be in a URL.
    """
    found: dict[str, list[Path]] = {}
    given = {folder.resolve() for folder in dist_dirs}
    for folder in dist_dirs:
        for name in find_families(folder, output):
            if (folder / name).resolve() not in given:
                found.setdefault(name, []).append(folder / name)
    require_addresses(folder_names(dist_dirs), {folders[0]: name for name, folders in found.items()})
    return {"": tuple(dist_dirs), **{name: (*dist_dirs, *folders) for name, folders in found.items()}}


def taken_by(family: str, projects: Collection[str]) -> str:
    """Return a description of the page that already uses the path of a family's index; empty if the path is free."""
    if family in (*PAGES, FRONT_PAGE):
        return "a page of the index"
    return "the page of a project" if family in projects else ""


def note_families(output: Path, wanted: Collection[str]) -> list[str]:
    """Record the indexes below this index, and return the indexes that are no longer needed."""
    known = read_families(output)
    gone = [name for name in known if name not in wanted]
    if not set(wanted) <= set(known):
        write_families(output, {*known, *wanted})
    return gone


def remove_index(folder: Path) -> None:
    """Remove the files that earlier runs wrote into an index, starting with its root page.

    Because of this order, no page lists files that no longer exist. Raises `WorkError` for files that can't be removed.
    """
    if folder.is_symlink() or not (folder / KNOWN_NAME).is_file():
        return
    known = read_known(folder)
    previous = read_previous(folder, known.written, {})
    try:
        with suppress(FileNotFoundError):
            if is_root_page(read_regular(folder / PAGES[0])):
                for page in reversed(PAGES):  # the HTML page shows which program owns the folder, so it comes last
                    (folder / page).unlink(missing_ok=True)
        remove_stale((), folder, previous, {})
        remove_stale_extras(folder, known.extras, ())
        remove_notes(folder, *NOTES)
    except OSError as e:
        raise WorkError(folder, f"can't be removed ({e.strerror})", remedy="Check its permissions.") from e
    with suppress(OSError):  # the folder has other files
        folder.rmdir()


def write_indexes(
    dist_dirs: Sequence[Path],
    output: Path,
    *,
    options: IndexOptions | None = None,
    unread: list[RocwheelError] | None = None,
) -> IndexReport:
    """Write an index of folders like `write_index`, and an index below it for each subfolder with distributions.

    A family's index, in the folder with its name, lists the shared files and the files in the family's folders. A file
    in several indexes is read once, and yanked in all of them. If a family's folder no longer exists, its index is
    removed.
    """
    with locked_index(output):
        return _make_writer(dist_dirs, output, options or IndexOptions()).write(unread)


def _make_writer(dist_dirs: Sequence[Path], output: Path, options: IndexOptions) -> _Writer:
    groups = find_groups(dist_dirs, output)
    served = options.served or output.resolve().parent
    options = msgspec.structs.replace(options, may_be_empty=len(groups) > 1, served=served)
    return _Writer(output, groups, options)


class _Writer(msgspec.Struct, frozen=True):
    """Writes all indexes in a run. The main index has an empty name."""

    output: Path
    groups: Mapping[str, tuple[Path, ...]]
    """The folders of each index."""
    options: IndexOptions
    marked: str | None = None
    """The only group whose yank marks change, or `None` for every group that lists the files."""

    def write(self, unread: list[RocwheelError] | None) -> IndexReport:
        """Write all indexes. If ``unread`` is a list, problems with individual files are appended to it.

        Family indexes are written before the pages of the main index that link to them, and removed after these pages.
        """
        yanking = self.options.yanking
        if self.marked is None:
            marks = _share(yanking, self.groups)
        else:
            marks = {**dict.fromkeys(self.groups, KEEP_YANKED), self.marked: yanking}
        below = _Below(self, marks, is_strict=unread is None)
        listed = self.write_one("", marks[""], unread, below.write)
        for name in below.gone:
            remove_index(self.output / name)
        if below.gone:
            write_families(self.output, below.names)
        if self.options.placement is FilePlacement.HARDLINK and self.options.memory:
            # Each hard link has changed the stamps that earlier indexes noted. Update these, so that no later run reads
            # the files again.
            self.write_one("", KEEP_YANKED, [], lambda _: below.contents)
            for group in below.reports:
                self.write_one(group, KEEP_YANKED, [])
        if unread is None:
            raise_all(str(self.output), below.problems)
        else:
            said = set(map(str, unread))  # these problems concern the shared files
            unread += [problem for problem in below.problems if str(problem) not in said]
        return msgspec.structs.replace(listed.report, families=below.reports)

    def write_one(
        self, group: str, marks: Yanking, unread: list[RocwheelError] | None, below: WriteFamilies | None = None
    ) -> WrittenIndex:
        """Write the index of a group. ``below`` writes the family indexes below it."""
        options = msgspec.structs.replace(self.options, family=group, yanking=marks)
        if below:
            options = msgspec.structs.replace(options, write_families=below)
        return write_locked_index(self.groups[group], self.output / group, options=options, unread=unread)


class _Below:
    """Writes the family indexes below the main index."""

    def __init__(self, writer: _Writer, marks: Mapping[str, Yanking], *, is_strict: bool) -> None:
        self._writer, self._marks, self._is_strict = writer, marks, is_strict
        self.names = [name for name in writer.groups if name]
        self.reports: dict[str, IndexReport] = {}
        self.contents: dict[str, IndexContent] = {}
        self.problems: list[RocwheelError] = []
        """The problems with these indexes, if every problem is an error."""
        self.gone: list[str] = []
        """The names of the indexes that are no longer needed."""

    def write(self, projects: Collection[str]) -> Mapping[str, IndexContent]:
        """Write the indexes below an index with these projects, and return their contents."""
        self.gone = note_families(self._writer.output, self.names)
        for name in self.names:
            more: list[RocwheelError] | None = None if self._is_strict else []
            try:
                if taken := taken_by(name, projects):
                    found = f"is {taken}, so it can't be the index of a folder"
                    remedy = "Rename the folder, or index it separately with a different --output."
                    raise InputError(self._writer.output / name, found, remedy=remedy)
                self.reports[name], self.contents[name] = self._writer.write_one(name, self._marks[name], more)
            except RocwheelError as e:
                self.problems += each_problem([e])
            self.problems += more or ()
        return self.contents


def _share(yanking: Yanking, groups: Mapping[str, tuple[Path, ...]]) -> dict[str, Yanking]:
    """Return the yank marks for the files in each index.

    Yank marks for unlisted files go to the first index.
    """
    if yanking == KEEP_YANKED:
        return dict.fromkeys(groups, yanking)
    listed = {group: _addresses(folders) for group, folders in groups.items()}
    shared = share_yanking(yanking, listed)
    somewhere = {name for names in listed.values() for name in names}
    nowhere = yanking.among({*yanking.yanked, *yanking.unyanked} - somewhere)
    first = Yanking({**shared[""].yanked, **nowhere.yanked}, (*shared[""].unyanked, *nowhere.unyanked))
    return {**shared, "": first}


def _addresses(folders: Sequence[Path]) -> dict[str, set[str]]:
    """Return the paths of the files in folders, keyed by file name."""
    found: dict[str, set[str]] = {}
    for folder in folders:
        resolved = folder.resolve()
        for name in list_names(folder):
            found.setdefault(name, set()).add(f"{resolved}/{name}")
    return found


def change_marks(
    output: Path, yanking: Yanking, *, progress: Progress = SILENT, keep: Callable[[Path], Extras] = lambda _: no_extras
) -> IndexReport:
    """Update the yank marks of an index and the family indexes below it. The folders of these indexes remain the same.

    If the index is for a family, only that index gets the yank marks. The index above it is also updated, because its
    page mentions these marks. ``keep`` returns the maker of an index's additional files. Raises `InputError` for a
    folder without an index, and `ProblemsError` for problems in its folders.
    """
    _require_index(output)
    with locked_index(output):
        _require_index(output)
        above = output.parent
        if output.name in read_families(above) and read_known(above).folders:
            writer = _make_writer(*_keeping(above, yanking, progress, keep(above)))
            if output.name in writer.groups:
                report = msgspec.structs.replace(writer, marked=output.name).write(None)
                own = report.families[output.name]
                return msgspec.structs.replace(own, edited=(*own.edited, *report.edited))
        kept = _keeping(output, yanking, progress, keep(output))
        if read_families(output):
            return _make_writer(*kept).write(None)
        return write_locked_index(kept[0], output, options=kept[2]).report


def _keeping(
    output: Path, yanking: Yanking, progress: Progress, extras: Extras
) -> tuple[list[Path], Path, IndexOptions]:
    """Return the folders of an index, its path, and the options for regenerating it with new yank marks."""
    known = _require_index(output)
    folders = [Path(os.path.normpath(output.resolve() / folder)) for folder in known.folders]
    return (
        folders,
        output,
        IndexOptions(
            placement=FilePlacement(known.placement),
            yanking=yanking,
            progress=progress,
            extras=extras,
            family=output.name if output.name in read_families(output.parent) else "",
            served=Path(os.path.commonpath([output.resolve().parent, *folders])),
            machine=known.machine,
        ),
    )


def _require_index(output: Path) -> KnownIndex:
    known = read_known(output)
    if not known.folders:
        remedy = "Run rocwheel index first, or specify the index with --output."
        raise InputError(output, "is not an index that rocwheel wrote", remedy=remedy)
    return known
