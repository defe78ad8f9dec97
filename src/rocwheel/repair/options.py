"""The options of a repair."""

from __future__ import annotations

from typing import Literal

import msgspec

from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.wheel_toolkits import ToolkitOption
from rocwheel.binary.elf.dynamic import RunpathTag

Mismatch = Literal["fail", "warn"]
"""The reaction of ``_rocm_init.py`` to a different version of the SDK."""

Pin = Literal["release", "none", "minor", "exact"]
"""How added requirements specify a version.

``minor``: for example, ``==1.2.*``. ``exact``: for example, ``==1.2.3``. ``release``: the same as ``minor`` for a given
package; for any other package, the ROCm release of the assumed layout (``==7.*``). ``none``: no version, unless folders
are removed from run paths because the package contains their libraries.
"""


class RepairOptions(msgspec.Struct, frozen=True):
    """The options of a repair. ``dlopen`` lists libraries that every file in the wheel may open by name."""

    tag: RunpathTag | None = None
    """The tag of all run paths, or `None` to keep their tags (see `rocwheel.repair.repair_plan.RepairPlanner`)."""
    pin: Pin = "release"
    dlopen: tuple[str, ...] = ()
    init: bool = False
    """Whether the wheel gets ``_rocm_init.py``."""
    mismatch: Mismatch = "fail"
    """How that module reacts to a different version of the SDK."""
    toolkit: ToolkitOption = "auto"
    """The toolkit that provides the wheels' ROCm libraries (`rocwheel.audit.wheel_toolkits`)."""
    keep: bool = False
    """Whether run paths retain every folder that might contain libraries (`Toolkit.keeps`)."""
    settings: AuditSettings = AuditSettings()
    """The audit's settings: additional system libraries, and libraries that files open by name."""

    @property
    def audit_settings(self) -> AuditSettings:
        """The settings for the audit of the repaired wheel."""
        everywhere = (*self.settings.dlopen.get("*", ()), *self.dlopen)
        return msgspec.structs.replace(self.settings, dlopen={**self.settings.dlopen, "*": everywhere})
