"""``rocwheel jax``: the group of the commands about JAX."""

from __future__ import annotations

import typer

from rocwheel.cli._app import app

__all__ = ["jax", "jax_app"]

jax_app = typer.Typer(name="jax", help="JAX for ROCm: Bazel settings, build commands, wheels.", no_args_is_help=True)
app.add_typer(jax_app)


@jax_app.callback()
def jax() -> None:
    """Group the commands about JAX."""
