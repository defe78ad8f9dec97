"""``rocwheel runpath show``: where ELF files search for the libraries that they need."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.tables import cell, print_table
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.cli.runpath.group import runpath_app
from rocwheel.core.errors import RocwheelError
from rocwheel.core.workers import raise_all
from rocwheel.linking.run_path_files import FileRunPath, read_run_paths

__all__ = ["show"]


@runpath_app.command()
def show(
    files: Annotated[list[Path], typer.Argument(metavar="PATH", help="ELF files, wheels, and folders of them.")],
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Show kind, SONAME, run path and needed libraries of ELF files, also of those in wheels and folders.

    The exit status is 2 when a file can't be read, after all others.

    Example: rocwheel runpath show lib/*.so
    """
    setup_logging(quiet=quiet, verbose=verbose)
    unread: list[RocwheelError] = []
    found = read_run_paths(files, unread, make_progress(quiet=quiet or json))
    if json:
        print_json("runpath.show", 1, {"files": found})
    else:
        print_table(_table(found))
    raise_all("files that can't be used", unread)


def _table(files: tuple[FileRunPath, ...]) -> Table:
    table = Table("file", "kind", "SONAME", "tag", "run path", "NEEDED", box=box.SIMPLE_HEAD)
    for file in files:
        tag = file.tag.name if file.tag else "-"
        cells = (
            file.file,
            file.kind.value,
            file.soname or "-",
            tag,
            file.run_path or "-",
            " ".join(file.needed) or "-",
        )
        table.add_row(*map(cell, cells))
    return table
