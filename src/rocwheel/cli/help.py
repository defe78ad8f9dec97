"""``rocwheel help``: what ``--help`` prints."""

from __future__ import annotations

from typing import Annotated

from rocwheel.cli.app import app, run_words
from rocwheel.cli.options import complete_commands
from rocwheel.cli.parameters import argument


@app.command("help")
def help_(
    words: Annotated[
        list[str] | None,
        argument(metavar="COMMAND", shell_complete=complete_commands, help="Describe this command."),
    ] = None,
) -> None:
    """Print the help of rocwheel or of a command.

    Example: rocwheel help targets list
    """
    run_words([*(words or ()), "--help"])
