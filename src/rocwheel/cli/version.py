"""``rocwheel version``: the version."""

from __future__ import annotations

import click

import rocwheel
from rocwheel.cli.app import app
from rocwheel.cli.options import JsonOption, QuietOption, VerboseOption
from rocwheel.cli.output import print_json


@app.command()
def version(*, json: JsonOption = False, quiet: QuietOption = False, verbose: VerboseOption = False) -> None:  # noqa: ARG001
    """Print the version, as --version does.

    Example: rocwheel version
    """
    if json:
        print_json("version", 1, {"version": rocwheel.__version__})
    else:
        click.echo(f"rocwheel {rocwheel.__version__}")
