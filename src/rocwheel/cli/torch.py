"""``rocwheel torch``: the group of the commands about PyTorch."""

from __future__ import annotations

import typer

from rocwheel.cli._app import app

__all__ = ["torch", "torch_app"]

torch_app = typer.Typer(
    name="torch", help="PyTorch for ROCm: initialiser, requirements, run path.", no_args_is_help=True
)
app.add_typer(torch_app)


@torch_app.callback()
def torch() -> None:
    """Group the commands about PyTorch."""
