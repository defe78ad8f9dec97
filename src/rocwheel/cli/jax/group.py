"""``rocwheel jax``: the group of the commands about JAX."""

from __future__ import annotations

from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.command import CommandApp

__all__ = ["jax", "jax_app"]

jax_app = CommandApp("jax", help="JAX for ROCm: Bazel settings, build commands, wheels.")
app.add_typer(jax_app)


@jax_app.callback()
def jax() -> None:
    """Group the commands about JAX."""
