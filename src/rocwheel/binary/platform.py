"""Determines a binary file's operating system: Linux for ELF files, Windows for DLLs and EXEs (PE files)."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from rocwheel.binary.elf.facts import Elf

if TYPE_CHECKING:
    from rocwheel.binary.pe.facts import Pe

LINUX_HOSTS: Final = frozenset([21, 62, 183, 243])
"""The ELF machine numbers of systems on which Linux runs with ROCm: PowerPC64, x86-64, AArch64, RISC-V."""


class Platform(str, enum.Enum):
    """An operating system for which packages are built; its text is the value of ``--platform``."""

    LINUX = "linux"
    WINDOWS = "windows"

    def __str__(self) -> str:
        """Return the value for ``--platform``, such as ``windows``."""
        return self.value

    @property
    def label(self) -> str:
        """The name for sentences, such as ``Windows``."""
        return self.value.capitalize()

    @property
    def sys_platform(self) -> str:
        """The value of the environment marker ``sys_platform`` (:pep:`508`)."""
        return "win32" if self is Platform.WINDOWS else "linux"


def platform_of(binary: Elf | Pe) -> Platform | None:
    """Return the operating system that runs or loads a binary, regardless of its machine.

    Returns `None` for files that can exist on any system: GPU code objects, object files, and detached debug
    information. Also returns `None` for ELF files for machines on which Linux doesn't run with ROCm.
    """
    if not isinstance(binary, Elf):
        return Platform.WINDOWS
    return Platform.LINUX if binary.is_host_code and binary.machine in LINUX_HOSTS else None
