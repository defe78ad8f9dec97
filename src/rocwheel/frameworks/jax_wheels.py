"""The descriptions of JAX's two wheels for ROCm, which ship with rocwheel."""

from __future__ import annotations

import importlib.resources
from typing import Any, Literal, cast

from rocwheel.frameworks.wheel_spec import read_spec_data

__all__ = ["JaxWheel", "jax_wheel_description"]

JaxWheel = Literal["pjrt", "plugin"]
"""``pjrt``: the PJRT plugin, one for all Pythons. ``plugin``: the extension modules, one for each Python."""

_FILE = "jax_wheels.toml"


def jax_wheel_description(wheel: JaxWheel) -> dict[str, Any]:
    """Return the description of a wheel; ``{rocm}`` and the version are its placeholders without a value."""
    data = importlib.resources.files(__package__).joinpath(_FILE).read_bytes()
    return cast("dict[str, Any]", read_spec_data(data, source=_FILE)[wheel])
