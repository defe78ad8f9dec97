"""What the commands that yank files and unyank them share."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from rocwheel.cli.index.text import print_notes
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.shared_options import shared
from rocwheel.index.families import change_marks
from rocwheel.index.front_content import kept_front_page
from rocwheel.index.notes import KNOWN_NAME
from rocwheel.index.write_index import IndexReport, default_output
from rocwheel.index.yanked import Yanking
from rocwheel.stores.urls import make_address, refuse_web_url

__all__ = ["FilesArgument", "IndexOption", "change"]

FilesArgument = Annotated[
    list[str], typer.Argument(metavar="FILE", help="The wheels and sdists, by their paths, URLs or names alone.")
]
IndexOption = Annotated[
    str | None,
    shared(
        "--output",
        metavar="DIR",
        help="Change this index, a folder or a URL.",
        show_default="the one of the folder of FILE",
    ),
]


def change(
    files: list[str], output: str | None, make: Callable[[list[str]], Yanking], *, json: bool, quiet: bool
) -> None:
    """Change the marks of files in their indexes, and print what is yanked there now."""
    for place in [output] if output else files:
        refuse_web_url(place)
    places: dict[str, list[str]] = {}
    for file in map(_local, files):
        place = _local(output) if output else _find_index(file)
        places.setdefault(place, []).append(file)
    for place, given in places.items():
        names = [_name(file) for file in given]
        report = _change(place, msgspec.structs.replace(make(names), files=_by_name(given)), quiet=quiet)
        if not quiet:
            print_notes(report, [Path(place)])
        if json:
            print_json("index", 1, report)
        elif not quiet:
            _print_marks(report, names)


def _change(place: str, yanking: Yanking, *, quiet: bool) -> IndexReport:
    path = Path(place)
    if _is_elsewhere(place) or (not _is_local(path) and _is_index(path)):
        report: IndexReport = _published().change_published(place, yanking)
        return report
    return change_marks(path, yanking, progress=make_progress(quiet=quiet), keep=kept_front_page)


def _name(file: str) -> str:
    return str(_published().file_name(file)) if _is_elsewhere(file) else file.rpartition("/")[2]


def _by_name(files: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the addresses of files that were given with their folders, by name; others mean all of that name."""
    alone = {file for file in files if "/" not in file and not Path(file).exists()}
    found: dict[str, tuple[str, ...]] = {}
    for file in files:
        if file not in alone:
            name = _name(file)
            found[name] = (*found.get(name, ()), make_address(file))
    return found


def _local(place: str) -> str:
    """Return the path of a file:// URL, and other places as they are."""
    return _published().local_path(place) if place.startswith("file:") else place


def _is_elsewhere(place: str) -> bool:
    return "://" in place


def _published() -> Any:
    # Only now, as `rocwheel index --help` would wait for what it imports.
    return import_module("rocwheel.cli.index.published_marks")


def _find_index(file: str) -> str:
    """Return where the index of a file is by default: of its folder, else of that above it, as for a family's file."""
    if _is_elsewhere(file):
        return str(_published().index_of_file(file))
    folder = Path(file).parent.resolve()
    places = [default_output(folder), default_output(folder.parent)]
    return str(next(filter(_is_index, places), places[0]))


def _is_local(folder: Path) -> bool:
    """Return whether the index is of folders, which are read again, rather than one that was published."""
    return (folder / KNOWN_NAME).is_file()


def _is_index(folder: Path) -> bool:
    return _is_local(folder) or (folder.is_dir() and bool(_published().is_published(str(folder))))


def _print_marks(report: IndexReport, names: list[str]) -> None:
    for index in (report, *report.families.values()):
        listed = {name for files in index.projects.values() for name in files}
        for name in names:
            if name in listed:
                reason = index.yanked.get(name)
                mark = "not yanked" if reason is None else f"yanked: {reason}" if reason else "yanked"
                print_line(f"{index.output}: {name}: {mark}")
