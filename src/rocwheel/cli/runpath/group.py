"""``rocwheel runpath``: the group of the commands about run paths."""

from __future__ import annotations

from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.command import CommandApp

__all__ = ["runpath", "runpath_app"]

runpath_app = CommandApp("runpath", help="Show and set the run paths of ELF files.")
app.add_typer(runpath_app)


@runpath_app.callback()
def runpath() -> None:
    """Hold the commands about run paths."""
