"""The root of the command line, put together from its groups."""

from __future__ import annotations

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


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"rocwheel {rocwheel.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Hold the options that come before any command."""
