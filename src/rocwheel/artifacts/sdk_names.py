"""How the SDK's packages, modules and extras are named: in general, for a target family, for a GPU target."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_PREFIX = "rocm-sdk-"
_FAMILY = re.compile(r"[\w.-]*", re.ASCII)
_DEVICE_PACKAGE = re.compile(r".*-device-(gfx[0-9a-f]+)")


def is_sdk_package(distribution: str) -> bool:
    """Return whether a normalized name is that of a package of the SDK; the selector ``rocm`` is none of them."""
    return distribution.startswith(_PREFIX)


def is_family(text: str) -> bool:
    """Return whether a text can name a target family, such as ``gfx94X-dcgpu``, or is empty for no family."""
    return _FAMILY.fullmatch(text) is not None


def family_module(module: str, family: str) -> str:
    """Return the name that a module has in the packages of a target family: ``_rocm_sdk_libraries_gfx94X_dcgpu``."""
    return f"{module}_{family.replace('-', '_')}"


def is_family_variant(distribution: str, neutral: str) -> bool:
    """Return whether a name is that of the package ``neutral`` for one target family."""
    return distribution.startswith(f"{neutral}-")


def device_target(distribution: str) -> str:
    """Return the GPU target that a device package is named for, ``gfx942``; empty for any other package."""
    match = _DEVICE_PACKAGE.fullmatch(distribution)
    return match[1] if match else ""


def is_divided(distribution: str, requires: Iterable[str]) -> bool:
    """Return whether device packages bring the kernels of a package, each for one GPU.

    So it is with the SDK's libraries, but those for one family of GPUs, and where requirements name device packages.
    """
    is_sdk = is_sdk_package(distribution) and not is_family_variant(distribution, "rocm-sdk-libraries")
    return is_sdk or any("-device-gfx" in text.lower().replace("_", "-") for text in requires)


def device_extra(processor: str) -> str:
    """Return the extra of the selector that asks for the device package of a GPU: ``device-gfx942``."""
    return f"device-{processor}"
