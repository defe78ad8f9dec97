"""The descriptions of JAX's two wheels for ROCm, which ship with rocwheel."""

from __future__ import annotations

from typing import Any, Literal

from rocwheel.tables import read_table

__all__ = ["JaxWheel", "jax_wheel_description"]

JaxWheel = Literal["pjrt", "plugin"]
"""``pjrt``: the PJRT plugin, one for all Pythons. ``plugin``: the extension modules, one for each Python."""

_FILE = "jax_wheels.toml"


def jax_wheel_description(wheel: JaxWheel) -> dict[str, Any]:
    """Return the description of a wheel; ``{rocm}`` and the version are its placeholders without a value."""
    return read_table(__package__, _FILE, dict[str, dict[str, Any]])[wheel]
