"""``rocwheel report``: where the bytes of packages are, for which GPUs, and what is wrong, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from rocwheel.cli.app import app
from rocwheel.cli.options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.cli.output import message_printer, print_json, setup_logging
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.core.workers import raise_all
from rocwheel.report.make_report import make_report
from rocwheel.report.page import check_output, write_page

if TYPE_CHECKING:
    from rocwheel.core.errors import RocwheelError

_UNREAD = "What can't be read"


@app.command()
def report(
    paths: Annotated[
        list[Path],
        argument(metavar="PATH", help="Wheels, sdists, builds, indexes, artifacts, environments, folders."),
    ],
    *,
    output: Annotated[Path | None, shared("--output", "Write the page to this file.")] = None,
    against: Annotated[
        Path | None, option("--against", metavar="OLD", help="Say what grew, shrank, came and went since OLD.")
    ] = None,
    estimate: Annotated[
        bool, option("--estimate", help="Reckon what could be saved from samples, which is quicker.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Write a page about packages: where the bytes are, which GPUs they serve, what could be saved, what is wrong.

    The page is one file that needs no network. Exit status 2 when something can't be read, after the page is written;
    the page shows what that is.

    Example: rocwheel report dist/ -o report.html
    """
    setup_logging(quiet=quiet, verbose=verbose)
    if output is None and not as_json:
        message = "Say where the page goes (-o report.html), or ask for --json."
        raise click.BadParameter(message)
    if output:
        check_output(output, [*paths, *([against] if against else [])])
    unread: list[RocwheelError] = []
    found = make_report(
        paths, unread=unread, left_out=output, against=against, estimate=estimate, progress=make_progress(quiet=quiet)
    )
    if output:
        size = write_page(output, found)
        message_printer(quiet=quiet or as_json)(f"{output}: {size} bytes")
    if as_json:
        print_json("report", 1, found)
    raise_all(_UNREAD, unread)
