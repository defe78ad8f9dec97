"""``rocwheel device list``: every entry of every bundle."""

from __future__ import annotations

import typer

from rocwheel.cli.device import device_app
from rocwheel.cli.device_options import FileArgument
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
from rocwheel.device.reading.facts import list_device_code

__all__ = ["list_command"]


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
