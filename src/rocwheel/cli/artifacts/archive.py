"""``rocwheel artifacts archive``: pack artifacts."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from rocwheel.artifacts.archives import ArchiveFormat
from rocwheel.artifacts.transfer import archive_artifacts
from rocwheel.cli.artifacts.group import artifacts_app
from rocwheel.cli.artifacts.options import DestDirOption, DirectoryArgument
from rocwheel.cli.artifacts.text import print_made
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.wheels.sdist import SourceDate

__all__ = ["archive"]


@artifacts_app.command()
def archive(
    directory: DirectoryArgument,
    dest_dir: DestDirOption,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Pack only these artifacts.")] = None,
    archive_format: Annotated[
        ArchiveFormat, typer.Option("--format", help="Compress the archives in this format.")
    ] = ArchiveFormat.ZST,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Pack each artifact into an archive; the same artifact always gives the same bytes.

    Example: rocwheel artifacts archive artifacts/ --dest-dir archives/ blas_lib_gfx942
    """
    setup_logging(quiet=quiet, verbose=verbose)
    date = SourceDate.from_environment(os.environ)
    progress = make_progress(quiet=quiet)
    paths = archive_artifacts(directory, dest_dir, names or (), archive_format, date, progress=progress)
    print_made("artifact-archives", paths, json=json)
