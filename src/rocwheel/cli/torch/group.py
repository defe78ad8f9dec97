"""``rocwheel torch``: the group of the commands about PyTorch."""

from __future__ import annotations

from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.command import CommandApp

__all__ = ["torch", "torch_app"]

torch_app = CommandApp("torch", help="PyTorch for ROCm: initialiser, requirements, run path.")
app.add_typer(torch_app)


@torch_app.callback()
def torch() -> None:
    """Group the commands about PyTorch."""
