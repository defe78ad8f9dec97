"""``rocwheel index``: a static package index over a folder of distributions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.distributions.index.write_index import FilePlacement, IndexReport, default_output, write_index
from rocwheel.distributions.index.yanked import Yanking
from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.counting import count
from rocwheel.foundation.errors import RocwheelError

__all__ = ["index"]


@app.command()
def index(
    dist_dir: Annotated[Path, typer.Argument(metavar="DIST_DIR", help="The folder of the wheels and sdists.")],
    output: Annotated[
        Path | None,
        shared(
            "--output",
            metavar="DIR",
            help="Write the index into this folder.",
            show_default="DIST_DIR/../simple, simple-NAME for a DIST_DIR not named dist",
        ),
    ] = None,
    files: Annotated[
        FilePlacement, typer.Option("--files", help="Link to the files where they are, or put them into the index.")
    ] = FilePlacement.RELATIVE,
    yank: Annotated[
        list[str] | None,
        typer.Option("--yank", metavar="FILE[=REASON]", help="Mark a file as yanked, from now on."),
    ] = None,
    unyank: Annotated[
        list[str] | None, typer.Option("--unyank", metavar="FILE", help="Mark a file as yanked no longer.")
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Write a static package index (PEP 503 and 691) over the wheels and sdists of a folder.

    The index works with file:// URLs and on any static web server. It has pages, sha256 hashes and core metadata. The
    distributions stay as they are. Core metadata goes next to each file as FILE.metadata. The exit
    status is 2 when a file can't be read; the index lists all others. Installers take a yanked file
    (PEP 592) only for a requirement of its very version.

    Example: rocwheel index packages/dist && pip install rocm-sdk-core --index-url file://$PWD/packages/simple
    """
    setup_logging(quiet=quiet, verbose=verbose)
    target = output or default_output(dist_dir)
    unread: list[RocwheelError] = []
    reasons = {name: reason for name, _, reason in (text.partition("=") for text in yank or ())}
    yanking = Yanking(reasons, tuple(unyank or ()))
    progress = make_progress(quiet=quiet)
    report = write_index(dist_dir, target, placement=files, progress=progress, unread=unread, yanking=yanking)
    if not quiet:
        for name in report.ignored:
            messages.print(f"not in the index, as it is not a wheel or .tar.gz sdist: {dist_dir / name}", markup=False)
        for name in report.subfolders:
            text = (
                f"not in the index, as it is a folder: {dist_dir / name}. Index it by itself, as two folders can have"
            )
            messages.print(f"{text} different files of one name.", markup=False)
    if json:
        print_json("index", 1, report)
    elif not quiet:
        _print_report(report, target.resolve(), verbose=verbose)
    raise_all(str(dist_dir), unread)


def _print_report(report: IndexReport, target: Path, *, verbose: bool) -> None:
    for project, names in report.projects.items():
        yanked = sum(name in report.yanked for name in names)
        print_line(f"{project}: {count(len(names), 'file')}{f', {yanked} yanked' if yanked else ''}")
        if verbose:
            print_line("\n".join(f"  {name}" for name in names))
    print_line(f"install with: pip install --index-url {target.as_uri()} PROJECT")
