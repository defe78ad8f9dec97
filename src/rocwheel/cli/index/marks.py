"""What the commands that yank files and unyank them share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

import typer

from rocwheel.cli.index.text import print_notes
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.shared_options import shared
from rocwheel.distributions.index.families import change_marks
from rocwheel.distributions.index.notes.known_files import KNOWN_NAME
from rocwheel.distributions.index.options import default_output
from rocwheel.distributions.index.planning.yanked import Yanking
from rocwheel.distributions.index.report import IndexReport
from rocwheel.distributions.publishing.layout import Layout
from rocwheel.distributions.publishing.marks import change_published_marks
from rocwheel.distributions.publishing.notes import NOTES_NAME, has_notes
from rocwheel.stores.open_store import open_store
from rocwheel.stores.urls import is_url, split_file_url
from rocwheel.targets.front_page import kept_front_page, next_front_page

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
    setup_logging(quiet=quiet, verbose=False)
    places: dict[str, list[str]] = {}
    for file in files:
        folder, name = _split(file)
        places.setdefault(output or _find_index(folder), []).append(name)
    for place, names in places.items():
        report = _change(place, make(names), quiet=quiet)
        if not quiet:
            print_notes(report, [Path(place)])
        if json:
            print_json("index", 1, report)
        elif not quiet:
            _print_marks(report, names)


def _change(place: str, yanking: Yanking, *, quiet: bool) -> IndexReport:
    path = Path(place)
    if is_url(place) or ((path / NOTES_NAME).is_file() and not (path / KNOWN_NAME).is_file()):
        return change_published_marks(open_store(place), yanking, next_front_page)
    return change_marks(path, yanking, progress=make_progress(quiet=quiet), extras=kept_front_page(path))


def _split(file: str) -> tuple[str, str]:
    """Return the folder of a file, or its URL, and the file's name; a file:// URL is its path."""
    if not is_url(file):
        return str(Path(file).parent.resolve()), Path(file).name
    folder, name = split_file_url(file)
    return (unquote(urlsplit(folder).path) if folder.startswith("file:") else folder).rstrip("/"), name


def _find_index(folder: str) -> str:
    """Return where the index of a folder is by default: its own, else that of the one above, as for a family's file."""
    if is_url(folder):
        # As `rocwheel publish` has it by default.
        above = folder.rpartition("/")[0]
        places = [f"{one.rpartition('/')[0]}/{Layout().index}" for one in (folder, above)]
        return next((place for place in places if has_notes(open_store(place))), places[0])
    paths = [default_output(Path(folder)), default_output(Path(folder).parent)]
    return str(
        next((path for path in paths if any((path / name).is_file() for name in (KNOWN_NAME, NOTES_NAME))), paths[0])
    )


def _print_marks(report: IndexReport, names: list[str]) -> None:
    for index in (report, *report.families.values()):
        listed = {name for files in index.projects.values() for name in files}
        for name in names:
            if name in listed:
                reason = index.yanked.get(name)
                mark = "not yanked" if reason is None else f"yanked: {reason}" if reason else "yanked"
                print_line(f"{index.output}: {name}: {mark}")
