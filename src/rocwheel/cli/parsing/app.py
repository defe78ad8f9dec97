"""The root of the command line, put together from its groups."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

import rocwheel
from rocwheel.cli.parsing.command import CommandApp
from rocwheel.core.errors import InputError

__all__ = ["app"]

app = CommandApp(
    "rocwheel",
    help="Turn ROCm builds into Python packages that install small, load anywhere, and run on the GPUs people have.",
    rich_markup_mode=None,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="With --version: print what a bug report needs, as `about` does.")
    ] = False,
) -> None:
    """Hold the options that come before any command."""
    if version and verbose:
        import_module("rocwheel.cli.about").about()
        raise typer.Exit
    if version:
        typer.echo(f"rocwheel {rocwheel.__version__}")
        raise typer.Exit
    if verbose:
        option, found = "--verbose", "stands before the command"
        raise InputError(option, found, expected="with --version, or behind the command's name")
    if context.invoked_subcommand is None:
        place, found = "rocwheel", "the command is missing"
        raise InputError(place, found, remedy="See rocwheel --help.")
