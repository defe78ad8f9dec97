"""Whether this user can reach the GPUs of this machine, told by the code that ships in ``rocm_sdk``."""

from __future__ import annotations

import msgspec

from rocwheel.sdk.rocm_sdk._access import ERROR, Finding, survey_access
from rocwheel.sdk.rocm_sdk._system import System

__all__ = ["AccessFinding", "AccessReport", "check_machine"]


class AccessFinding(msgspec.Struct, frozen=True):
    """One thing that is wrong, or worth knowing, and the command that mends it."""

    level: str
    """``error``, ``warning`` or ``note``."""
    text: str
    remedy: str

    def __str__(self) -> str:
        return str(Finding(self.level, self.text, self.remedy))


class AccessReport(msgspec.Struct, frozen=True):
    """What `check_machine` found."""

    gpus: tuple[str, ...]
    """The target of each GPU, in the order of their nodes."""
    findings: tuple[AccessFinding, ...]

    @property
    def usable(self) -> bool:
        """Whether nothing keeps the user from the GPUs; also true where there is none, unless one is required."""
        return all(finding.level != ERROR for finding in self.findings)


def check_machine(system: System | None = None, *, require_gpu: bool = False) -> AccessReport:
    """Look at the driver, the devices and the permissions of ``system`` (this machine)."""
    gpus, findings = survey_access(system or System(), require_gpu=require_gpu)
    return AccessReport(tuple(gpu.target for gpu in gpus), tuple(AccessFinding(*finding) for finding in findings))
