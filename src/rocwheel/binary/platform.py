"""Knows the system that a program or library is for: Linux for ELF files, Windows for DLLs and EXEs (PE files)."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from rocwheel.binary.elf.facts import Elf

if TYPE_CHECKING:
    from rocwheel.binary.pe.facts import Pe

LINUX_HOSTS: Final = frozenset([21, 62, 183, 243])
"""The machines that Linux with ROCm runs on, by ELF number: PowerPC64, x86-64, AArch64, RISC-V."""


class Platform(str, enum.Enum):
    """A system that packages are made for; its text is the value for ``--platform``."""

    LINUX = "linux"
    WINDOWS = "windows"

    def __str__(self) -> str:
        """Return the text, such as ``windows``."""
        return self.value

    @property
    def label(self) -> str:
        """The name in sentences, such as ``Windows``."""
        return self.value.capitalize()


def platform_of(binary: Elf | Pe) -> Platform | None:
    """Return the system that runs or loads a binary, whatever its machine.

    Returns `None` for data on every system: code objects for GPUs, object files, and split-off debug information. Also
    returns `None` for ELF files for machines that no Linux with ROCm runs on.
    """
    if not isinstance(binary, Elf):
        return Platform.WINDOWS
    return Platform.LINUX if binary.is_host_code and binary.machine in LINUX_HOSTS else None
