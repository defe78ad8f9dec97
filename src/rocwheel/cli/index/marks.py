"""What the commands that yank files and unyank them share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli.index.text import print_notes
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.shared_options import shared
from rocwheel.distributions.index.families import change_marks
from rocwheel.distributions.index.notes.known_files import KNOWN_NAME
from rocwheel.distributions.index.planning.yanked import Yanking
from rocwheel.distributions.index.write_index import IndexReport, default_output
from rocwheel.targets.front_page import kept_front_page

__all__ = ["FilesArgument", "IndexOption", "change"]

FilesArgument = Annotated[
    list[Path], typer.Argument(metavar="FILE", help="The wheels and sdists, by their paths or by their names alone.")
]
IndexOption = Annotated[
    Path | None,
    shared("--output", metavar="DIR", help="Change this index.", show_default="the one of the folder of FILE"),
]


def change(
    files: list[Path], output: Path | None, make: Callable[[list[str]], Yanking], *, json: bool, quiet: bool
) -> None:
    """Change the marks of files in their indexes, and print what is yanked there now."""
    setup_logging(quiet=quiet, verbose=False)
    places: dict[Path, list[str]] = {}
    for file in files:
        places.setdefault(output or _find_index(file), []).append(file.name)
    for place, names in places.items():
        report = change_marks(place, make(names), progress=make_progress(quiet=quiet), extras=kept_front_page(place))
        if not quiet:
            print_notes(report, [place])
        if json:
            print_json("index", 1, report)
        elif not quiet:
            _print_marks(report, names)


def _find_index(file: Path) -> Path:
    """Return where the index of a file is by default: of its folder, else of that above it, as for a family's file."""
    folder = file.parent.resolve()
    places = [default_output(folder), default_output(folder.parent)]
    return next((place for place in places if (place / KNOWN_NAME).is_file()), places[0])


def _print_marks(report: IndexReport, names: list[str]) -> None:
    for index in (report, *report.families.values()):
        listed = {name for files in index.projects.values() for name in files}
        for name in names:
            if name in listed:
                reason = index.yanked.get(name)
                mark = "not yanked" if reason is None else f"yanked: {reason}" if reason else "yanked"
                print_line(f"{index.output}: {name}: {mark}")
