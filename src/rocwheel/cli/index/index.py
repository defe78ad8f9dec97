"""``rocwheel index``: a static package index over a folder of distributions."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from rocwheel.build.cluster.readers import reading, shared_paths
from rocwheel.cli.front_options import read_extras
from rocwheel.cli.index.text import print_index, print_notes
from rocwheel.cli.index.variants_options import IndexVariants, read_index_variants
from rocwheel.cli.output.consoles import teller
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, SchedulerOption, VerboseOption, shared, takes
from rocwheel.core.errors import RocwheelError
from rocwheel.core.workers import raise_all
from rocwheel.index.extra_files import Extras
from rocwheel.index.families import find_groups, write_indexes
from rocwheel.index.folder import folder_names
from rocwheel.index.pages import choose_upload_time
from rocwheel.index.placing import FilePlacement
from rocwheel.index.write_index import IndexOptions, IndexReport, choose_output
from rocwheel.index.yanked import Yanking

__all__ = ["index"]

_OutputOption = Annotated[
    Path | None,
    shared(
        "--output",
        metavar="DIR",
        help="Write the index into this folder.",
        show_default="DIST_DIR/../simple, simple-NAME for a DIST_DIR not named dist",
    ),
]


def _read_options(
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
    upload_time: Annotated[
        str | None,
        typer.Option(
            "--upload-time",
            metavar="TIME",
            help="Say of all new files that they were uploaded then.",
            show_default="SOURCE_DATE_EPOCH, else when each was last written",
        ),
    ] = None,
) -> IndexOptions:
    reasons = {name: reason for name, _, reason in (text.partition("=") for text in yank or ())}
    return IndexOptions(
        placement=files,
        yanking=Yanking(reasons, tuple(unyank or ())),
        upload_time=choose_upload_time(upload_time, os.environ, time.time_ns() // 1000),
    )


@app.command()
@takes(options=_read_options, variants=read_index_variants, extras=read_extras)
def index(
    dist_dirs: Annotated[list[Path], typer.Argument(metavar="DIST_DIR", help="The folders of the wheels and sdists.")],
    *,
    output: _OutputOption = None,
    options: IndexOptions,
    variants: IndexVariants,
    extras: Extras,
    scheduler: SchedulerOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Write a static package index (PEP 503 and 691) over the wheels and sdists of folders.

    The index works with file:// URLs and on any static web server. It has pages, sha256 hashes and core metadata, which
    goes next to each file as FILE.metadata. The distributions stay as they are. The exit status is 2 when a file can't
    be read; the index lists all others. Installers take a yanked file (PEP 592) only for a requirement that names
    exactly its version. A folder in DIST_DIR that holds wheels or sdists, as those of a build per family do, gets an
    index of its own below the index, of its files and those right in all DIST_DIR.

    Example: rocwheel index packages/dist && pip install rocm-sdk-core --index-url file://$PWD/packages/simple
    """
    setup_logging(quiet=quiet, verbose=verbose)
    dist_dirs = shared_paths(scheduler, dist_dirs)
    (target,) = shared_paths(scheduler, [choose_output(dist_dirs, output)])
    unread: list[RocwheelError] = []
    variants.add(lambda: find_groups(dist_dirs, target).values(), quiet=quiet)
    wanted = replace(options, machine=variants.machine, extras=extras, progress=make_progress(quiet=quiet))
    with reading(scheduler, teller(quiet=quiet)) as readers:
        report = write_indexes(dist_dirs, target, options=replace(wanted, readers=readers), unread=unread)
    if not quiet:
        print_notes(report, dist_dirs)
        variants.warn([report, *report.families.values()])
    _print(report, variants, json=json, quiet=quiet, verbose=verbose)
    raise_all(folder_names(dist_dirs), unread)


def _print(report: IndexReport, variants: IndexVariants, *, json: bool, quiet: bool, verbose: bool) -> None:
    if json:
        print_json("index", 1, report)
    elif not quiet:
        print_index(report, verbose=verbose)
        for one in (report, *report.families.values()):
            variants.report(one.variants)
