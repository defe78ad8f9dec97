"""Marks files as yanked or not yanked in the indexes that list them, in folders and on stores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import msgspec

from rocwheel.core.progress import SILENT, Progress
from rocwheel.index.families import change_marks
from rocwheel.index.folder_notes import KNOWN_NAME
from rocwheel.index.front_content import kept_front_page, next_front_page
from rocwheel.index.publish import change_published_marks, is_family
from rocwheel.index.published import has_root_page
from rocwheel.index.uploads import Layout
from rocwheel.index.write_index import default_output
from rocwheel.stores.open import open_store
from rocwheel.stores.store import StoreError
from rocwheel.stores.urls import is_url, local_path, make_address, parse_url, refuse_web_url, split_file_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rocwheel.index.write_index import IndexReport
    from rocwheel.index.yanked import Yanking


def change_marks_of(
    files: Sequence[str],
    output: str | None,
    make: Callable[[list[str]], Yanking],
    new_progress: Callable[[], Progress] = lambda: SILENT,
) -> Iterator[tuple[str, IndexReport, list[str]]]:
    """Change the yank marks of files in their indexes, or in the index at ``output``.

    Yield each index, its report, and the names of the files.

    Files are specified by path, URL, or name. ``make`` returns the marks for files with these names. Raises
    `InputError` for locations without an index, and the same errors as `change_marks` and `change_published_marks`.
    """
    for place in [output] if output else files:
        refuse_web_url(place)
    places: dict[str, list[str]] = {}
    for file in map(_path_of, files):
        places.setdefault(_path_of(output) if output else _find_index(file), []).append(file)
    for place, given in places.items():
        names = [_name(file) for file in given]
        yanking = msgspec.structs.replace(make(names), files=_by_name(given))
        path = Path(place)
        if _is_elsewhere(place) or (not _is_of_folders(path) and _is_index(path)):
            # For a family's index, the front page of the index above it is also updated. Without access to that
            # index, only the family's marks change.
            above, _, name = place.rstrip("/").rpartition("/")
            family = unquote(name) if is_url(place) else name
            is_below = bool(above) and not above.endswith("/")  # the URL must not be the whole bucket
            if is_below and _leads_to(above, family):
                report = change_published_marks(open_store(above), yanking, next_front_page, family)
            else:
                report = change_published_marks(open_store(place), yanking, next_front_page)
        else:
            report = change_marks(path, yanking, progress=new_progress(), keep=kept_front_page)
        yield place, report, names


def _leads_to(above: str, family: str) -> bool:
    try:
        return is_family(open_store(above), family)
    except StoreError:
        return False


def _find_index(file: str) -> str:
    """Return the default location of the index for a file's folder. For a family's file, use the parent folder.

    For a published file, this is the location that `rocwheel publish` uses.
    """
    if _is_elsewhere(file):
        folder = file.rpartition("/")[0]
        above = [
            folder.rpartition("/")[0],
            folder.rpartition("/")[0].rpartition("/")[0],
        ]  # the files of a family are one level deeper
        places = [f"{one}/{Layout().index}" for one in above]
        return next((place for place in places if place.count("/") > 2 and has_root_page(open_store(place))), places[0])
    parent = Path(file).parent.resolve()
    folders = [default_output(parent), default_output(parent.parent)]
    return str(next(filter(_is_index, folders), folders[0]))


def _name(file: str) -> str:
    return split_file_url(file)[1] if _is_elsewhere(file) else file.rpartition("/")[2]


def _by_name(files: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the addresses of files that were specified with a folder, keyed by name.

    A plain name refers to all such files.
    """
    alone = {file for file in files if "/" not in file and not Path(file).exists()}
    found: dict[str, tuple[str, ...]] = {}
    for file in files:
        if file not in alone:
            name = _name(file)
            found[name] = (*found.get(name, ()), make_address(file))
    return found


def _path_of(place: str) -> str:
    """Return the path of a ``file://`` URL, and other locations unchanged. Raises the same errors as `parse_url`."""
    if not place.startswith("file:"):
        return place
    parse_url(place)
    return local_path(urlsplit(place).path)


def _is_elsewhere(place: str) -> bool:
    return "://" in place


def _is_of_folders(folder: Path) -> bool:
    """Return whether the index was generated from folders, which are read again, rather than published."""
    return (folder / KNOWN_NAME).is_file()


def _is_index(folder: Path) -> bool:
    return _is_of_folders(folder) or (folder.is_dir() and has_root_page(open_store(str(folder))))
