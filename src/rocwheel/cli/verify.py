"""``rocwheel verify``: whether files are what a manifest, RECORD or an index says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal

from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.foundation.collecting import attempt_all, raise_all
from rocwheel.foundation.counting import count
from rocwheel.foundation.workers import open_workers, worker_count
from rocwheel.verifying.verify import verify as verify_path

if TYPE_CHECKING:
    from rocwheel.foundation.errors import RocwheelError
    from rocwheel.verifying.values import Verified

__all__ = ["verify"]

_UNUSABLE = "What can't be verified"


@app.command()
def verify(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Manifests, builds, wheels, sdists, SHA256SUMS, indexes, environments."),
    ],
    *,
    jobs: Annotated[int, shared("--jobs", min=0)] = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compare files with what a build's manifest, a RECORD or an index says of them.

    Exit status 1 when a file is missing, is another or should not be there; 2 when something can't be verified, after
    all others.

    Example: rocwheel verify packages/rocwheel-build.json
    """
    setup_logging(quiet=quiet, verbose=verbose)
    progress = make_progress(quiet=quiet)
    unread: list[RocwheelError] = []
    found: list[Verified] = []
    with open_workers(worker_count(jobs)) as executor:
        attempt_all(lambda path: found.extend(verify_path(path, executor, progress)), paths, unread)
    if as_json and found:
        print_json("verify", 1, {"verified": found})
    elif not as_json:
        _print(found, quiet=quiet)
    raise_all(_UNUSABLE, unread)
    if any(one.faults for one in found):
        raise typer.Exit(1)


def _print(found: list[Verified], *, quiet: bool) -> None:
    for one in found:
        for fault in one.faults:
            print_line(f"{fault.kind} {fault.text}")
        if not quiet:
            unchecked = f", {one.unchecked} not compared" if one.unchecked else ""
            files = f"{count(one.files, 'file')} ({decimal(one.size)}){unchecked}"
            print_line(f"{one.path}: {one.kind}, {files}: {count(len(one.faults), 'fault') if one.faults else 'good'}")
