"""The options of a repair."""

from __future__ import annotations

from typing import Literal

import msgspec

from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.repair.toolkit import ToolkitOption

__all__ = ["Mismatch", "Pin", "RepairOptions"]

Mismatch = Literal["fail", "warn"]
"""What ``_rocm_init.py`` does when the SDK has another version."""

Pin = Literal["none", "minor", "exact"]
"""How added requirements name their version: not at all, as ``==1.2.*``, or as ``==1.2.3``."""


class RepairOptions(msgspec.Struct, frozen=True):
    """The options of a repair. ``dlopen`` are libraries that every file of the wheel may open by name."""

    tag: RunpathTag | None = None
    """The tag of all run paths; None to choose it by what the wheel has (see `rocwheel.repair.plan.RepairPlanner`)."""
    pin: Pin = "none"
    dlopen: tuple[str, ...] = ()
    init: bool = False
    """Whether the wheel gets ``_rocm_init.py``."""
    mismatch: Mismatch = "fail"
    """What that module does when the SDK has another version."""
    toolkit: ToolkitOption = "auto"
    """Whose ROCm the wheels' libraries are taken from (`rocwheel.repair.toolkit`)."""
    settings: AuditSettings = AuditSettings()
    """The audit's settings: more system libraries, and what files open by name."""

    @property
    def audit_settings(self) -> AuditSettings:
        """The settings by which the repaired wheel is audited."""
        everywhere = (*self.settings.dlopen.get("*", ()), *self.dlopen)
        return msgspec.structs.replace(self.settings, dlopen={**self.settings.dlopen, "*": everywhere})
