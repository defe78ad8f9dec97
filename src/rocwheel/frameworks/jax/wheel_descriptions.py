"""The descriptions of JAX's two wheels for ROCm, which ship with rocwheel."""

from __future__ import annotations

import re
from typing import Any, Literal

from rocwheel.core.decoding import read_table
from rocwheel.core.errors import InputError

__all__ = ["JaxWheel", "jax_wheel_description", "rocm_major"]

JaxWheel = Literal["pjrt", "plugin"]
"""``pjrt``: the PJRT plugin, one for all Pythons. ``plugin``: the extension modules, one for each Python."""

_FILE = "wheel_descriptions.toml"
_ROCM_OPTION = "--rocm"
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")


def jax_wheel_description(wheel: JaxWheel) -> dict[str, Any]:
    """Return the description of a wheel; ``{rocm}`` and the version are its placeholders without a value."""
    return read_table(__package__, _FILE, dict[str, dict[str, Any]])[wheel]


def rocm_major(text: str, source: str = _ROCM_OPTION) -> str:
    """Return the major version of ROCm, as it stands in the wheels' names, of a version such as 7 or 7.2.0.

    Raises `InputError`, which names what gave the version, for any other text.
    """
    if not _VERSION.fullmatch(text):
        raise InputError(source, f"is {text!r}", expected="a version, such as 7 or 7.2.0")
    return text.partition(".")[0]
