"""``rocwheel runpath``: the group of the commands about run paths."""

from __future__ import annotations

import typer

from rocwheel.cli._app import app

__all__ = ["runpath", "runpath_app"]

runpath_app = typer.Typer(name="runpath", help="Show and set the run paths of ELF files.", no_args_is_help=True)
app.add_typer(runpath_app)


@runpath_app.callback()
def runpath() -> None:
    """Hold the commands about run paths."""
