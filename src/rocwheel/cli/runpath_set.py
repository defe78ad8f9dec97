"""``rocwheel runpath set``: copies of ELF files with another run path."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.cli.output import JsonOption, QuietOption, VerboseOption, print_json, setup_logging
from rocwheel.cli.runpath import runpath_app
from rocwheel.cli.runpath_options import FilesArgument
from rocwheel.linking.run_path_choice import SetRunpath
from rocwheel.linking.run_path_files import write_run_paths

__all__ = ["set_"]


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
