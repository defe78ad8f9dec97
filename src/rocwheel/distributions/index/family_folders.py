"""The folders of families among distributions, and which of them have an index below another."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.names import is_utf8
from rocwheel.core.reading import read_regular
from rocwheel.core.workers import raise_all
from rocwheel.distributions.index.notes.known_files import (
    KNOWN_NAME,
    NOTES,
    read_families,
    read_known,
    remove_notes,
    write_families,
)
from rocwheel.distributions.index.pages.simple_pages import FRONT_PAGE, PAGES, is_root_page
from rocwheel.distributions.index.placing.extra_files import remove_stale_extras
from rocwheel.distributions.index.placing.previous import read_previous, remove_stale
from rocwheel.distributions.index.reading.listing import find_families
from rocwheel.distributions.index.reading.read_folder import folder_names

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

__all__ = ["find_groups", "note_families", "remove_index", "taken_by"]


def find_groups(dist_dirs: Sequence[Path], output: Path) -> dict[str, tuple[Path, ...]]:
    """Return the folders of each index: those of all by no name, and of each family these and its own.

    A folder of a family that is indexed by itself is none. Raises `InputError` for one whose name no address can have.
    """
    found = _find_family_folders(dist_dirs, output)
    return {"": tuple(dist_dirs), **{name: (*dist_dirs, *folders) for name, folders in found.items()}}


def _find_family_folders(dist_dirs: Sequence[Path], output: Path) -> dict[str, list[Path]]:
    """Return the folders of each family, by its name; those that are indexed by themselves are none."""
    found: dict[str, list[Path]] = {}
    given = {folder.resolve() for folder in dist_dirs}
    for folder in dist_dirs:
        for name in find_families(folder, output):
            if (folder / name).resolve() not in given:
                found.setdefault(name, []).append(folder / name)
    raise_all(folder_names(dist_dirs), [_no_name(folders[0]) for name, folders in found.items() if not is_utf8(name)])
    return found


def _no_name(folder: Path) -> InputError:
    found, remedy = "has a name that is not in UTF-8, which no address of an index can have", "Rename it."
    return InputError(folder, found, remedy=remedy)


def taken_by(family: str, projects: Collection[str]) -> str:
    """Return what has the place of a family's index below one that lists these projects; empty for nothing."""
    if family in (*PAGES, FRONT_PAGE):
        return "a page of the index"
    return "the page of a project" if family in projects else ""


def note_families(output: Path, wanted: Collection[str]) -> list[str]:
    """Note which indexes there are below this one, and return those of them that are not wanted any more."""
    known = read_families(output)
    gone = [name for name in known if name not in wanted]
    if not set(wanted) <= set(known):
        write_families(output, {*known, *wanted})
    return gone


def remove_index(folder: Path) -> None:
    """Remove what runs have written into an index: first its root's page, so that none lists what is gone.

    Raises `WorkError` for what can't be removed.
    """
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
