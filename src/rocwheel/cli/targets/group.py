"""``rocwheel targets``: the group of the commands about GPU targets."""

from __future__ import annotations

from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.command import CommandApp

__all__ = ["targets", "targets_app"]

targets_app = CommandApp(
    "targets", help="GPU targets: which exist, how each tool spells them, which code runs on which."
)
app.add_typer(targets_app)


@targets_app.callback()
def targets() -> None:
    """Hold the commands about GPU targets."""
