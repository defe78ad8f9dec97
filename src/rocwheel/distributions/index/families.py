"""One index for each family of GPUs: of what all share, and of what the folder of the family has.

The packages of several families can have the same names, so that no index can list them all. They stand in folders
below that of the others, and the indexes of these below the index of the others.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.index.notes.known_files import (
    KNOWN_NAME,
    NOTES,
    read_families,
    read_known,
    remove_notes,
    write_families,
)
from rocwheel.distributions.index.pages.simple_pages import PAGES, is_root_page
from rocwheel.distributions.index.placing.extra_files import Extras, no_extras, remove_stale_extras
from rocwheel.distributions.index.placing.previous import read_previous, remove_stale
from rocwheel.distributions.index.planning.yanked import KEEP_YANKED, Yanking
from rocwheel.distributions.index.reading.listing import find_families, list_names
from rocwheel.distributions.index.write_index import FilePlacement, IndexOptions, IndexReport, write_index
from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.errors import InputError, ProblemsError, RocwheelError, WorkError
from rocwheel.foundation.files.regular_files import read_regular
from rocwheel.foundation.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

__all__ = ["change_marks", "write_indexes"]


def write_indexes(
    dist_dirs: Sequence[Path],
    output: Path,
    *,
    placement: FilePlacement = FilePlacement.RELATIVE,
    progress: Progress = SILENT,
    unread: list[RocwheelError] | None = None,
    yanking: Yanking = KEEP_YANKED,
    options: IndexOptions | None = None,
) -> IndexReport:
    """Write an index of folders as `write_index` does, and below it one for each of their folders with distributions.

    The index of a family, in the folder of its name, lists what the others list and what the family's folders have. A
    file that several indexes list is read once, and yanked in all. The index of a family whose folder is gone is
    removed.
    """
    found = _find_families(dist_dirs, output)
    options = options or IndexOptions()
    served = options.served or output.resolve().parent
    options = msgspec.structs.replace(options, may_be_empty=bool(found), served=served)
    groups = {name: (*dist_dirs, *folders) for name, folders in found.items()}
    marks = _share(yanking, {"": tuple(dist_dirs), **groups})

    def write(folders: Sequence[Path], group: str, problems: list[RocwheelError] | None) -> IndexReport:
        return write_index(
            folders, output / group, placement=placement, progress=progress, unread=problems, yanking=marks[group],
            options=msgspec.structs.replace(options, family=group),
        )  # fmt: skip

    listed = write(dist_dirs, "", unread)
    gone = _note_families(output, groups)
    families: dict[str, IndexReport] = {}
    problems: list[RocwheelError] = []
    for name, folders in groups.items():
        more: list[RocwheelError] | None = None if unread is None else []
        with _collecting(problems):
            _check_place(output / name, listed)
            families[name] = write(folders, name, more)
        problems += more or ()
    for name in gone:
        _remove_index(output / name)
    if gone:
        write_families(output, groups)
    if placement is FilePlacement.HARDLINK and options.memory:
        # Each link has changed the stamps that the indexes before it have noted: so that none reads its files again.
        for group in ("", *families):
            write((*dist_dirs, *found.get(group, ())), group, [])
    if unread is None:
        raise_all(str(output), problems)
    else:
        said = set(map(str, unread))  # of the files that all share
        unread += [problem for problem in problems if str(problem) not in said]
    return msgspec.structs.replace(listed, families=families)


@contextmanager
def _collecting(problems: list[RocwheelError]) -> Iterator[None]:
    try:
        yield
    except RocwheelError as e:
        problems += e.problems if isinstance(e, ProblemsError) else [e]


def _find_families(dist_dirs: Sequence[Path], output: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    given = {folder.resolve() for folder in dist_dirs}
    for folder in dist_dirs:
        for name in find_families(folder, output):
            if (folder / name).resolve() not in given:
                found.setdefault(name, []).append(folder / name)
    return found


def _share(yanking: Yanking, groups: dict[str, tuple[Path, ...]]) -> dict[str, Yanking]:
    """Return what to yank in each index: what it lists, and in the first one also what none of them does."""
    if yanking == KEEP_YANKED:
        return dict.fromkeys(groups, yanking)
    names = {group: {name for folder in folders for name in list_names(folder)} for group, folders in groups.items()}
    asked, somewhere = {*yanking.yanked, *yanking.unyanked}, set[str]().union(*names.values())
    return {group: _among(yanking, own if group else own | (asked - somewhere)) for group, own in names.items()}


def _among(yanking: Yanking, names: Collection[str]) -> Yanking:
    yanked = {name: reason for name, reason in yanking.yanked.items() if name in names}
    return Yanking(yanked, tuple(name for name in yanking.unyanked if name in names))


def _check_place(folder: Path, listed: IndexReport) -> None:
    if folder.name in listed.projects:
        remedy = "Rename the folder, or index it by itself with another --output."
        raise InputError(folder, "is the page of a project, so it can't be the index of a folder", remedy=remedy)


def _note_families(output: Path, wanted: Collection[str]) -> list[str]:
    """Note which indexes there are below this one, and return those of them that are not wanted any more."""
    known = read_families(output)
    gone = [name for name in known if name not in wanted]
    if not set(wanted) <= set(known):
        write_families(output, {*known, *wanted})
    return gone


def _remove_index(folder: Path) -> None:
    """Remove what runs have written into an index: first its root's page, so that none lists what is gone."""
    if folder.is_symlink() or not (folder / KNOWN_NAME).is_file():
        return
    known = read_known(folder)
    previous = read_previous(folder, known.written, {})
    try:
        with suppress(FileNotFoundError):
            if is_root_page(read_regular(folder / PAGES[0])):
                for page in reversed(PAGES):  # the HTML page tells whose the folder is
                    (folder / page).unlink(missing_ok=True)
        remove_stale((), folder, previous, {})
        remove_stale_extras(folder, known.extras, ())
        remove_notes(folder, *NOTES)
    except OSError as e:
        raise WorkError(folder, f"can't be removed ({e.strerror})", remedy="Check its permissions.") from e
    with suppress(OSError):  # files of somebody else's
        folder.rmdir()


def change_marks(
    output: Path, yanking: Yanking, *, progress: Progress = SILENT, extras: Extras = no_extras
) -> IndexReport:
    """Bring an index, and those of families below it, up to date with other marks; they are of the folders as before.

    Raises `InputError` for a folder without an index, `ProblemsError` for what is wrong in its folders.
    """
    known = read_known(output)
    if not known.folders:
        remedy = "Run rocwheel index first, or name the index with --output."
        raise InputError(output, "is not an index that rocwheel has written", remedy=remedy)
    folders = [Path(os.path.normpath(output.resolve() / folder)) for folder in known.folders]
    placement = FilePlacement(known.placement)
    options = IndexOptions(
        extras=extras,
        family=output.name if output.name in read_families(output.parent) else "",
        served=Path(os.path.commonpath([output.resolve().parent, *folders])),
        machine=known.machine,
    )
    # The index of a family is one of its folders, in which those of the other families lie.
    write = write_indexes if read_families(output) else write_index
    return write(folders, output, placement=placement, progress=progress, yanking=yanking, options=options)
