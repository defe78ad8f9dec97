"""``rocwheel device``: the group of the commands about device code."""

from __future__ import annotations

from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.command import CommandApp

__all__ = ["device", "device_app"]

device_app = CommandApp("device", help="Device code: list, extract, bundle, compress, prune, offer to more GPUs.")
app.add_typer(device_app)


@device_app.callback()
def device() -> None:
    """Hold the commands about device code."""
