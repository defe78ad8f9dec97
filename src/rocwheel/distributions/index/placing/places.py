"""Whether an index can be written where it is wanted: everything is looked at before anything is written."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError, read_error
from rocwheel.core.reading import open_regular
from rocwheel.core.workers import raise_all
from rocwheel.distributions.index.pages.simple_pages import PAGES, is_project_page, is_root_page

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from rocwheel.core.errors import RocwheelError

__all__ = ["check_output", "check_targets"]

_REMEDY = "Give another --output, or remove it."
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check_output(output: Path, dist_dir: Path, served: Path | None = None, *, holds_files: bool) -> None:
    """Raise `InputError` when an index of ``dist_dir`` can't be in ``output``, whatever it lists.

    ``holds_files`` says that it will have the distributions themselves; else they have to be in the folder that is
    ``served`` with it, by default the one above it.
    """
    if os.path.lexists(output) and not output.is_dir():
        raise InputError(output, "is not a folder", remedy="Name a folder for the index with --output.")
    place = output.resolve()
    if holds_files and place == dist_dir.resolve():
        remedy = "Name another folder with --output, or link to the files with --files relative."
        raise InputError(output, "holds the distributions already", remedy=remedy)
    if not holds_files and not dist_dir.resolve().is_relative_to(served.resolve() if served else place.parent):
        remedy = (
            "Write the index next to the folder or above it, or put the files into it with --files hardlink or copy."
        )
        raise InputError(output, f"a web server for it would not serve {dist_dir.resolve()}", remedy=remedy)


def check_targets(output: Path, projects: Iterable[str], files: Collection[Path], noted: Collection[str]) -> None:
    """Raise the problem, or all, about what stands in the place of a page, a project's folder or one of ``files``.

    A page of another origin, a link to another folder, and what is not a file at all are never replaced, nor is a file
    in a folder without a page of this command, unless its project, or for the output any, is ``noted``.
    """
    folders = [output / project for project in projects]
    problems = [*_folder_problems(folders), *_page_problems(output, is_root_page)]
    for folder in folders:
        problems += _page_problems(folder, is_project_page)
    jsons = [folder / PAGES[1] for folder in (output, *folders)]
    for path in (*files, *jsons):
        problems += _file_problems(path)
    unknown = {folder for folder in folders if folder.name not in noted} | ({output} if not noted else set())
    for path in (*(path for path in files if path.parent in folders), *jsons):  # without notes of its own
        if path.parent in unknown and (path.is_symlink() or path.is_file()) and not (path.parent / PAGES[0]).exists():
            problems.append(InputError(path, "a file that this command has not written", remedy=_REMEDY))
    raise_all(str(output), problems)


def _folder_problems(folders: Iterable[Path]) -> Iterator[RocwheelError]:
    for folder in folders:
        try:
            mode = folder.lstat().st_mode
        except OSError:  # nothing
            continue
        if stat.S_ISLNK(mode):
            found = f"is a link to {folder.readlink()}"
            yield InputError(folder, found, expected="a folder of the index's own", remedy="Remove the link.")
        elif not stat.S_ISDIR(mode):
            yield InputError(folder, "is not a folder", remedy="Give another --output, or remove it.")


def _page_problems(folder: Path, is_own: Callable[[bytes], bool]) -> Iterator[RocwheelError]:
    page = folder / PAGES[0]
    problem = next(_file_problems(page), None)
    if problem:
        yield problem
        return
    try:
        with open_regular(page) as file:
            known = is_own(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as e:
        yield read_error(page, e, remedy="Check its permissions.")
        return
    if not known:
        remedy = "Give another --output, or remove the page."
        yield InputError(page, "a page that this command has not written for this place", remedy=remedy)


def _file_problems(path: Path) -> Iterator[RocwheelError]:
    try:
        mode = path.stat().st_mode
    except OSError:  # nothing, or a link to nothing
        return
    if kind := _KINDS.get(stat.S_IFMT(mode)):
        yield InputError(path, f"is {kind}", expected="a file that can be replaced, or nothing", remedy="Remove it.")
