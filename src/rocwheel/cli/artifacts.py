"""``rocwheel artifacts``: the group of the commands about SDK artifacts."""

from __future__ import annotations

import typer

from rocwheel.cli._app import app

__all__ = ["artifacts", "artifacts_app"]

artifacts_app = typer.Typer(
    name="artifacts", help="Look at, pack, unpack and import SDK artifacts.", no_args_is_help=True
)
app.add_typer(artifacts_app)


@artifacts_app.callback()
def artifacts() -> None:
    """Group the commands about SDK artifacts."""
