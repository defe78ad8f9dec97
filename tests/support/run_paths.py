"""Files of several linkers and machines whose run paths tests change, and what becomes of them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.runpath import plan_runpath
from rocwheel.core.reading import join_data
from tests.support.places import ELF_FIXTURES as FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.core.patch import FilePatch

RUNPATH, RPATH = RunpathTag.RUNPATH, RunpathTag.RPATH
LONG = "$ORIGIN/../../_rocm_sdk_core/lib:$ORIGIN/../../_rocm_sdk_core/lib/rocm_sysdeps/lib"
"""A run path for which most files have no room."""
PT_LOAD = 1


def load(name: str) -> bytes:
    """Return the bytes of a fixture."""
    return (FIXTURES / name).read_bytes()


def edit(data: bytes, value: str, tag: RunpathTag = RUNPATH) -> bytes:
    """Return a file with another run path."""
    return apply(data, plan_runpath(data, value, tag, name="file"))


def apply(data: bytes, patch: FilePatch) -> bytes:
    """Return the bytes of a file after a patch."""
    return join_data(patch.apply(memoryview(data)))


def run_paths(data: bytes) -> tuple[str | None, str | None]:
    """Return RPATH and RUNPATH of a file."""
    elf = read_elf(data, name="file")
    return elf.rpath, elf.runpath


def run(program: bytes, folder: Path) -> int:
    """Run a program of the fixtures, which ends with 42 when the kernel and the loader did right by it."""
    path = folder / "program"
    path.write_bytes(program)
    path.chmod(0o755)
    return subprocess.run([path], check=False, cwd="/", env={}).returncode
