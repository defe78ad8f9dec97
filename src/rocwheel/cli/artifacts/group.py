"""``rocwheel artifacts``: the group of the commands about SDK artifacts."""

from __future__ import annotations

from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.command import CommandApp

__all__ = ["artifacts", "artifacts_app"]

artifacts_app = CommandApp("artifacts", help="Look at, pack, unpack and import SDK artifacts.")
app.add_typer(artifacts_app)


@artifacts_app.callback()
def artifacts() -> None:
    """Group the commands about SDK artifacts."""
