"""Which system a program or library is for: ELF files for Linux, DLLs and EXEs (PE files) for Windows."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from rocwheel.binary.elf.facts import Elf

if TYPE_CHECKING:
    from rocwheel.binary.pe.facts import Pe

LINUX_HOSTS: Final = frozenset([21, 62, 183, 243])
"""Machines that Linux with ROCm runs on, as ELF numbers them: PowerPC64, x86-64, AArch64, RISC-V."""


class Platform(str, enum.Enum):
    """A system that packages are made for; its text is what ``--platform`` takes."""

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
    """Return the system that runs or loads a binary, whichever machine of it that is for.

    None for what is data on every system: code objects for GPUs, object files, split-off debug information, and ELF
    files of machines that no Linux with ROCm runs on.
    """
    if not isinstance(binary, Elf):
        return Platform.WINDOWS
    return Platform.LINUX if binary.is_host_code and binary.machine in LINUX_HOSTS else None
