"""Handles the yanked files of an index (:pep:`592`), which installers use only if their exact version is requested."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.names import is_utf8
from rocwheel.core.reading import read_if_readable
from rocwheel.core.workers import raise_all
from rocwheel.index.pages import decode_edited_page, decode_html_page, is_project_page
from rocwheel.stores.urls import file_name_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from rocwheel.index.pages import RawFile


class Yanking(msgspec.Struct, frozen=True):
    """The files to yank and to unyank."""

    yanked: dict[str, str] = {}
    """The reasons for yanking, keyed by file name. A reason may be empty."""
    unyanked: tuple[str, ...] = ()
    files: dict[str, tuple[str, ...]] = {}
    """The intended files for each name that several files share: paths without symlinks, or URLs.

    See `share_yanking`.
    """

    def among(self, names: Collection[str]) -> Yanking:
        """Return the yank marks for these files."""
        yanked = {name: reason for name, reason in self.yanked.items() if name in names}
        return Yanking(yanked, tuple(name for name in self.unyanked if name in names))


KEEP_YANKED = Yanking()

NAME_REMEDY = "Specify the name of a wheel or sdist {}."
"""The remedy for a name that doesn't exist in the folder or index."""


def read_yanked(output: Path, projects: Iterable[str]) -> dict[str, str]:
    """Return the reasons for yanking the files that the pages of projects mark as yanked, keyed by file name.

    A mark in either format is sufficient. Someone may have edited the pages. Invalid or unreadable pages have no marks.
    Raises `InputError` if the disk fails.
    """
    found: dict[str, str] = {}
    for project in projects:
        found |= yanked_in_html(read_if_readable(output / project / "index.html"))
        found |= yanked_in_json(read_if_readable(output / project / "index.json"))
    return found


def yanked_in_html(data: bytes) -> dict[str, str]:
    """Return the reasons for yanking files on a project's page, keyed by file name. Empty for any other page."""
    return yanked_among(decode_html_page(data).files) if b"data-yanked" in data and is_project_page(data) else {}


def yanked_in_json(data: bytes) -> dict[str, str]:
    """Return the result of `yanked_in_html` for the JSON page."""
    try:
        return yanked_among(decode_edited_page(data)) if b'"yanked"' in data else {}
    except msgspec.DecodeError:
        return {}


def yanked_among(files: Collection[RawFile]) -> dict[str, str]:
    """Return the reasons for yanking files in a page's file list, keyed by file name."""
    reasons = {file.filename or file_name_at(file.url): file.yanked_reason for file in files}
    return {name: reason for name, reason in reasons.items() if name and reason is not None}


def change_yanked(
    present: Mapping[str, str], yanking: Yanking, names: Collection[str], folder: Path | str
) -> dict[str, str]:
    """Return the yank marks after a change.

    Raise `InputError` for a file that is not one of the ``names`` in ``folder``.

    If ``folder`` is a string, it is the location of an index, such as its URL. Marks of files that no longer exist are
    dropped.
    """
    raise_all(str(folder), list(_problems(yanking, names, folder)))
    changed = {**present, **yanking.yanked}
    return {name: reason for name, reason in sorted(changed.items()) if name in names and name not in yanking.unyanked}


def _problems(yanking: Yanking, names: Collection[str], folder: Path | str) -> Iterator[InputError]:
    where = "in the folder" if isinstance(folder, Path) else "in the index"

    def problem(name: str, found: str, remedy: str) -> InputError:
        return InputError(folder / name if isinstance(folder, Path) else f"{folder}/{name}", found, remedy=remedy)

    for name in (*yanking.yanked, *yanking.unyanked):
        if name not in names:
            yield problem(name, f"is not {where}, so it can't be yanked or unyanked", NAME_REMEDY.format(where))
    for name, reason in yanking.yanked.items():
        if any(letter < " " for letter in reason):
            yield problem(name, f"has the reason {reason!r}, which contains control characters", "Remove them.")
        if not is_utf8(reason):
            yield problem(name, f"has the reason {reason!r}, which is not valid UTF-8", "Enter the reason again.")
        if name in yanking.unyanked:
            yield problem(name, "can't be both yanked and unyanked", "Either yank or unyank the file.")


def share_yanking(yanking: Yanking, listed: Mapping[str, Mapping[str, Collection[str]]]) -> dict[str, Yanking]:
    """Return the changes in each index. ``listed`` contains the addresses of each index's files, keyed by name.

    Families can contain different files with the same name. A mark goes only to the indexes that list the specified
    file, or to all indexes for a plain name. Raises `InputError` for a file that no index lists, if other files have
    the same name.
    """
    asked = {*yanking.yanked, *yanking.unyanked}
    here = {name: {address for files in listed.values() for address in files.get(name, ())} for name in asked}
    meant = {name: _meant(yanking.files.get(name, ()), addresses) for name, addresses in here.items()}
    return {
        index: yanking.among({name for name in asked if not meant[name].isdisjoint(files.get(name, ()))})
        for index, files in listed.items()
    }


def _meant(given: Collection[str], listed: Collection[str]) -> set[str]:
    """Return the intended files among all files with the same name."""
    found = set(given) & set(listed)
    if found or not given or len(listed) < 2:
        return found or set(listed)
    several = ", ".join(sorted(listed))
    raise InputError(
        min(given), f"is not listed, but other files with its name are: {several}", remedy="Specify one of these files."
    )
