"""Defines the names of the SDK's packages, modules, and extras: generic, for a target family, or for a GPU target."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_PREFIX = "rocm-sdk-"
_FAMILY = re.compile(r"[\w.-]*", re.ASCII)
_DEVICE_PACKAGE = re.compile(r".*-device-(gfx[0-9a-f]+)")


def is_sdk_package(distribution: str) -> bool:
    """Return whether a normalized name is the name of an SDK package. The selector ``rocm`` is not an SDK package."""
    return distribution.startswith(_PREFIX)


def is_family(text: str) -> bool:
    """Return whether text is a valid target family, such as ``gfx94X-dcgpu``, or empty, which means no family."""
    return _FAMILY.fullmatch(text) is not None


def family_module(module: str, family: str) -> str:
    """Return the name of a module in the packages for a target family, such as ``_rocm_sdk_libraries_gfx94X_dcgpu``."""
    return f"{module}_{family.replace('-', '_')}"


def is_family_variant(distribution: str, neutral: str) -> bool:
    """Return whether a name is the name of the package ``neutral`` for a single target family."""
    return distribution.startswith(f"{neutral}-")


def device_target(distribution: str) -> str:
    """Return the GPU target in a device package's name, such as ``gfx942``, or an empty string for other packages."""
    match = _DEVICE_PACKAGE.fullmatch(distribution)
    return match[1] if match else ""


def is_divided(distribution: str, requires: Iterable[str]) -> bool:
    """Return whether a package's kernels are in separate device packages, one for each GPU.

    That is true for the SDK's libraries without a GPU family, and for packages that require device packages.
    """
    is_sdk = is_sdk_package(distribution) and not is_family_variant(distribution, "rocm-sdk-libraries")
    return is_sdk or any("-device-gfx" in text.lower().replace("_", "-") for text in requires)


def device_extra(processor: str) -> str:
    """Return the name of the selector's extra for the device package of a GPU, such as ``device-gfx942``."""
    return f"device-{processor}"
