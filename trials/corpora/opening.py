"""Libraries of published wheels that the real loader opens, or doesn't."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.binary.elf.facts import read_elf
from rocwheel.core.errors import InputError
from rocwheel.core.reading import FileRange

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.binary.elf.facts import Elf

__all__ = ["elf_facts", "is_library", "open_libraries"]

_OPEN_EACH = Path(__file__).with_name("open_each.py")
_X86_64 = 62


def elf_facts(path: Path) -> Elf:
    """Return the facts of an ELF file; raises `ElfError` where it is none, or is damaged."""
    with FileRange.whole(path).view() as data:
        return read_elf(data, name=str(path))


def is_library(path: Path) -> bool:
    """Return whether a file is a shared library for x86-64."""
    try:
        elf = elf_facts(path)
    except InputError:
        return False
    return elf.is_shared_library and elf.is_dynamic and elf.machine == _X86_64


def open_libraries(paths: Iterable[Path]) -> list[str]:
    """Return what the real loader says of each library, without the addresses in it; nothing where it opens one.

    It finds no folder by the environment, and each library is opened in a process of its own.
    """
    lines = "".join(f"{path}\n" for path in paths)
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    command = [sys.executable, "-SE", str(_OPEN_EACH)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, env=environment, cwd="/")
    return [re.sub(r"0x[0-9a-f]+", "ADDRESS", json.loads(line)) for line in done.stdout.splitlines()]
