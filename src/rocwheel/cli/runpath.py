"""``rocwheel runpath``: show and set where ELF files search for the libraries that they need."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.cli._app import app
from rocwheel.cli.output import JsonOption, QuietOption, VerboseOption, print_json, print_table, setup_logging
from rocwheel.linking.run_path_choice import SetRunpath
from rocwheel.linking.run_path_files import FileRunPath, read_run_paths, write_run_paths

__all__ = ["runpath_app"]

runpath_app = typer.Typer(name="runpath", help="Show and set the run paths of ELF files.", no_args_is_help=True)
app.add_typer(runpath_app)

FilesArgument = Annotated[list[Path], typer.Argument(metavar="FILE", help="ELF files.")]


@runpath_app.callback()
def runpath() -> None:
    """Hold the commands about run paths."""


@runpath_app.command()
def show(
    files: FilesArgument,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Show kind, SONAME, run path and needed libraries of ELF files.

    Example: rocwheel runpath show lib/*.so
    """
    setup_logging(quiet=quiet, verbose=verbose)
    found = read_run_paths(files)
    if json:
        print_json("runpath.show", 1, {"files": found})
    else:
        print_table(_table(found))


@runpath_app.command("set")
def set_(
    value: Annotated[str, typer.Argument(help="The new run path; an empty one removes it.")],
    files: FilesArgument,
    dest_dir: Annotated[
        Path, typer.Option(help="Write the changed copies to this folder; it is made if it doesn't exist.")
    ],
    rpath: Annotated[bool, typer.Option("--rpath", help="Set the old RPATH, which LD_LIBRARY_PATH can't override.")] = (
        False
    ),
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Write copies of ELF files with another run path, without touching the files themselves.

    All are checked before the first copy is written.

    Example: rocwheel runpath set '$ORIGIN:$ORIGIN/../../_rocm_sdk_core/lib' lib/*.so --dest-dir fixed/
    """
    setup_logging(quiet=quiet, verbose=verbose)
    tag = RunpathTag.RPATH if rpath else RunpathTag.RUNPATH
    written = write_run_paths(files, SetRunpath(value, tag), dest_dir, remedy="Name another folder with --dest-dir.")
    if json:
        print_json("runpath.set", 1, {"tag": tag, "run_path": value, "files": written})
    elif not quiet:
        for file in written:
            typer.echo(f"{file.written}: {'changed' if file.is_changed else 'right already, copied as it is'}")


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
        table.add_row(*map(Text, cells))
    return table
