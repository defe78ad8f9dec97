"""``HSA_OVERRIDE_GFX_VERSION``: the version that the runtime takes in place of a GPU's own."""

from __future__ import annotations

import re

from .gfx_version import DetectionError, is_version, target_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .system import System

__all__ = ["read_override"]


def read_override(system: System, number: int) -> str:
    """Return the target that a variable sets for the node of this number (the runtime's), empty when none does.

    Raises `DetectionError` for a value that is not a version.
    """
    name = f"HSA_OVERRIDE_GFX_VERSION_{number}"
    value = system.variable(name)
    if not value:
        name = "HSA_OVERRIDE_GFX_VERSION"
        value = system.variable(name)
    if not value:
        return ""
    match = re.fullmatch("([0-9]{1,2})[.]([0-9]{1,2})[.]([0-9]{1,2})", value)
    major, minor, stepping = map(int, match.groups()) if match else (0, 0, 0)
    version = major * 10000 + minor * 100 + stepping
    if not is_version(version):
        source = f"{name}={value}"
        raise DetectionError(source, "expected major.minor.stepping, such as 10.3.0")
    return target_name(version)
