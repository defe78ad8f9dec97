"""The options of a repair."""

from __future__ import annotations

from typing import Literal

import msgspec

from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.wheel_toolkits import ToolkitOption
from rocwheel.binary.elf.dynamic import RunpathTag

Mismatch = Literal["fail", "warn"]
"""What ``_rocm_init.py`` does when the SDK has another version."""

Pin = Literal["release", "none", "minor", "exact"]
"""How added requirements name their version.

``minor``: as ``==1.2.*``. ``exact``: as ``==1.2.3``. ``release``: as ``minor`` where the package is at hand, else as
the release of ROCm whose layout is taken to be installed (``==7.*``). ``none``: not at all, except where run paths give
up folders for what the package has.
"""


class RepairOptions(msgspec.Struct, frozen=True):
    """The options of a repair. ``dlopen`` are libraries that every file of the wheel may open by name."""

    tag: RunpathTag | None = None
    """The tag of all run paths; None to leave them under theirs (see `rocwheel.repair.repair_plan.RepairPlanner`)."""
    pin: Pin = "release"
    dlopen: tuple[str, ...] = ()
    init: bool = False
    """Whether the wheel gets ``_rocm_init.py``."""
    mismatch: Mismatch = "fail"
    """What that module does when the SDK has another version."""
    toolkit: ToolkitOption = "auto"
    """Whose ROCm the wheels' libraries are taken from (`rocwheel.audit.wheel_toolkits`)."""
    keep: bool = False
    """Whether run paths keep every folder that may have libraries (`Toolkit.keeps`)."""
    settings: AuditSettings = AuditSettings()
    """The audit's settings: more system libraries, and what files open by name."""

    @property
    def audit_settings(self) -> AuditSettings:
        """The settings by which the repaired wheel is audited."""
        everywhere = (*self.settings.dlopen.get("*", ()), *self.dlopen)
        return msgspec.structs.replace(self.settings, dlopen={**self.settings.dlopen, "*": everywhere})
