"""``rocwheel device list`` and ``extract``, and the options that commands about device code share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli._app import app
from rocwheel.cli.device_text import entry_lines
from rocwheel.cli.output import (
    JsonOption,
    QuietOption,
    VerboseOption,
    print_json,
    printable,
    report_warning,
    setup_logging,
)
from rocwheel.cli.targets import read_targets
from rocwheel.device.reading.extract import MatchRule, extract_code
from rocwheel.device.reading.facts import list_device_code
from rocwheel.foundation.errors import InputError

__all__ = ["GIB", "FileArgument", "ForceOption", "LimitOption", "device_app", "regular_path"]

device_app = typer.Typer(
    name="device", help="Device code: list, extract, compress, prune, offer to more GPUs.", no_args_is_help=True
)
app.add_typer(device_app)


def regular_path(path: Path) -> Path:
    """Return the path of a file or folder; raise `InputError` for anything else."""
    if not path.is_dir() and not path.is_file():
        # A pipe would be waited for, a device read without end.
        raise InputError(path, "is not a regular file", expected="one with device code")
    return path


FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A fat binary, a file of bundles, a code object, an object file or a static library.",
        exists=True,
        dir_okay=False,
        callback=regular_path,
    ),
]
LimitOption = Annotated[
    int,
    typer.Option(
        "--limit",
        metavar="GIB",
        min=1,
        help="Decompress bundles of at most this size, and hold no more at a time, in GiB.",
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Accept bundles whose hash is wrong, with a warning.")]
GIB = 1 << 30
"""The unit of ``--limit``, in bytes."""


@device_app.callback()
def device() -> None:
    """Hold the commands about device code."""


@device_app.command("list")
def list_command(
    file: FileArgument, *, as_json: JsonOption = False, quiet: QuietOption = False, verbose: VerboseOption = False
) -> None:
    """List every entry of every bundle, compressed or not, in file order; only heads are decompressed.

    Exit status 1 when device code is doubtful, such as bundles that readers take differently.

    Example: rocwheel device list librocsparse.so
    """
    setup_logging(quiet=quiet, verbose=verbose)
    facts = list_device_code(file)
    if as_json:
        print_json("device-list", 1, facts)
    else:
        for line in entry_lines(facts, with_bundles=not quiet):
            typer.echo(printable(line))
    for problem in () if quiet else facts.problems:
        report_warning(problem)
    if facts.problems:
        raise typer.Exit(1)


@device_app.command()
def extract(
    file: FileArgument,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            metavar="TARGETS",
            help="Extract the code for these targets, in any spelling; by default for all.",
        ),
    ] = None,
    *,
    rule: Annotated[MatchRule, typer.Option(help="Choose the code for a target by this rule.")] = MatchRule.EXACT,
    allow_missing: Annotated[bool, typer.Option("--allow-missing", help="Skip bundles without such code.")] = False,
    limit: LimitOption = 4,
    force: ForceOption = False,
    dest_dir: Annotated[
        Path,
        typer.Option(
            "--dest-dir", "-d", metavar="DIR", help="Write the files to this folder; it is created if needed."
        ),
    ] = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Write the code objects for targets, one file for each bundle.

    The images of an object file, and a code object by itself, count as a bundle.

    Example: rocwheel device extract librocsparse.so --target gfx90a:xnack- --dest-dir code
    """
    setup_logging(quiet=quiet, verbose=verbose)
    targets = read_targets(target).ids if target else ()
    extracted = extract_code(
        file,
        dest_dir,
        targets,
        rule=rule,
        allow_missing=allow_missing,
        limit=limit * GIB,
        accept_wrong_hash=force,
    )
    if as_json:
        print_json("device-extract", 1, {"files": extracted})
    elif not quiet:
        for code in extracted:
            typer.echo(printable(code.path))
