"""``rocwheel device``: the group of the commands about device code."""

from __future__ import annotations

import typer

from rocwheel.cli._app import app

__all__ = ["device", "device_app"]

device_app = typer.Typer(
    name="device", help="Device code: list, extract, compress, prune, offer to more GPUs.", no_args_is_help=True
)
app.add_typer(device_app)


@device_app.callback()
def device() -> None:
    """Hold the commands about device code."""
