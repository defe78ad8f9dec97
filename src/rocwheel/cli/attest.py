"""``rocwheel attest``: statements about the packages of a build, to be signed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from rocwheel.cli.app import app
from rocwheel.cli.options import JsonOption, QuietOption, VerboseOption, shared, takes
from rocwheel.cli.output import messages, print_json, setup_logging
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.cli.text import print_line
from rocwheel.core.errors import InputError
from rocwheel.core.workers import open_workers, worker_count
from rocwheel.verify.builds import attest as attest_build
from rocwheel.wheels.build_manifest import DEFAULT_BUILDER


def _read_builder(
    builder_id: Annotated[
        str, option("--builder-id", metavar="URI", help="Name who ran the build by this URI.")
    ] = DEFAULT_BUILDER,
) -> str:
    try:
        has_scheme = bool(urlsplit(builder_id).scheme) and builder_id.isprintable() and " " not in builder_id
    except ValueError:
        has_scheme = False
    if not has_scheme:
        option, found = "--builder-id", f"is {builder_id!r}"
        raise InputError(option, found, expected="a URI, such as https://example.org/builds")
    return builder_id


@app.command()
@takes(builder=_read_builder)
def attest(
    build: Annotated[Path, argument(metavar="BUILD", help="The folder of a build, or its rocwheel-build.json.")],
    *,
    builder: str,
    jobs: Annotated[int, shared("--jobs", min=0)] = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Write an unsigned in-toto statement with SLSA provenance about each package of a build.

    The packages are compared with the manifest first. Exit status 1 when one is not what it says.

    Example: rocwheel attest packages
    """
    setup_logging(quiet=quiet, verbose=verbose)
    with open_workers(worker_count(jobs)) as executor:
        found = attest_build(build, builder, executor, make_progress(quiet=quiet))
    if as_json:
        print_json("attest", 1, found)
        return
    for statement in found.statements.values():
        print_line(statement)
    if not quiet:
        messages.print(f"unsigned; the predicate of all: {found.predicate}", markup=False)
