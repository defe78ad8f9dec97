"""``rocwheel index unyank``: takes the marks of yanked files off."""

from __future__ import annotations

from rocwheel.cli.index.marks import FilesArgument, IndexOption, change
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.index.yanked import Yanking

__all__ = ["unyank"]


@app.command("index unyank")
def unyank(
    files: FilesArgument,
    output: IndexOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Mark files of an index as yanked no longer. The index is brought up to date with its folders.

    Example: rocwheel index unyank packages/dist/rocm-7.0.0.tar.gz
    """
    setup_logging(quiet=quiet, verbose=verbose)
    change(files, output, lambda names: Yanking(unyanked=tuple(names)), json=json, quiet=quiet)
