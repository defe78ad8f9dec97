"""``rocwheel index yank``: marks files of an index as yanked."""

from __future__ import annotations

from typing import Annotated

import typer

from rocwheel.cli.index.marks import FilesArgument, IndexOption, change
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.index.yanked import Yanking

__all__ = ["yank"]


@app.command("index yank")
def yank(
    files: FilesArgument,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Have installers print this.", show_default="none")
    ] = "",
    output: IndexOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Mark files of an index as yanked (PEP 592): installers take them only for a requirement of exactly their version.

    The index is brought up to date with its folders. Indexes of families that list the file have the mark, too. It
    stays until `rocwheel index unyank`. For a folder that is called yank, write ./yank.

    Example: rocwheel index yank packages/dist/rocm-7.0.0.tar.gz --reason "installs nothing for gfx942"
    """
    setup_logging(quiet=quiet, verbose=verbose)
    change(files, output, lambda names: Yanking(dict.fromkeys(names, reason)), json=json, quiet=quiet)
