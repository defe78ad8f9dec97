"""``rocwheel targets``: the group of the commands about GPU targets."""

from __future__ import annotations

import typer

from rocwheel.cli._app import app

__all__ = ["targets", "targets_app"]

targets_app = typer.Typer(
    name="targets",
    help="GPU targets: which exist, how each tool spells them, which code runs on which.",
    no_args_is_help=True,
)
app.add_typer(targets_app)


@targets_app.callback()
def targets() -> None:
    """Hold the commands about GPU targets."""
