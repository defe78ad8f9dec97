"""``rocwheel help``: what ``--help`` prints."""

from __future__ import annotations

from typing import Annotated

import typer

from rocwheel.cli.app import app
from rocwheel.cli.options import complete_commands


@app.command("help")
def help_(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND", autocompletion=complete_commands, help="Describe this command."),
    ] = None,
) -> None:
    """Print the help of rocwheel or of a command.

    Example: rocwheel help targets list
    """
    app([*(words or ()), "--help"], prog_name=context.find_root().info_name, standalone_mode=False)
