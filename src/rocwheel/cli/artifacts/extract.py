"""``rocwheel artifacts extract``: unpack artifacts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocwheel.artifacts.transfer import extract_archives
from rocwheel.cli.artifacts.group import artifacts_app
from rocwheel.cli.artifacts.options import DestDirOption
from rocwheel.cli.artifacts.text import print_made
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption

__all__ = ["extract"]


@artifacts_app.command()
def extract(
    archives: Annotated[list[Path], typer.Argument(metavar="ARCHIVE", help="Artifact archives.")],
    dest_dir: DestDirOption,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Unpack each artifact archive into a folder of its name; nothing is overwritten.

    Example: rocwheel artifacts extract archives/*.tar.zst --dest-dir artifacts/
    """
    setup_logging(quiet=quiet, verbose=verbose)
    paths = extract_archives(archives, dest_dir, progress=make_progress(quiet=quiet))
    print_made("artifact-folders", paths, json=json)
