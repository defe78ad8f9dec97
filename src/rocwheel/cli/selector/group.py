"""``rocwheel selector``: the group of the commands about the distribution that chooses packages."""

from __future__ import annotations

from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.command import CommandApp

__all__ = ["selector", "selector_app"]

selector_app = CommandApp("selector", help="The rocm distribution, which chooses packages for a machine.")
app.add_typer(selector_app)


@selector_app.callback()
def selector() -> None:
    """Hold the commands about the selector."""
