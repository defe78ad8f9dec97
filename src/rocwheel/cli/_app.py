"""The root of the command line, put together from its groups."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

import rocwheel

__all__ = ["app"]

app = typer.Typer(
    name="rocwheel",
    help="Turn ROCm builds into Python packages that install small, load anywhere, and run on the GPUs people have.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
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
        message = "'--verbose' goes with '--version' here; give it to a command behind the command's name."
        raise typer.BadParameter(message)
    if context.invoked_subcommand is None:
        context.fail("Missing command.")
