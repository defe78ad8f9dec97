"""A folder full of what an attacker would plant: modules, packages of ROCm, libraries, programs; each leaves a mark."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

__all__ = ["Planted", "plant"]

MODULES = (
    *("_rocm_sdk_core", "_rocm_sdk_libraries", "_rocm_sdk_devel", "_rocm_profiler", "_rocm_sdk_device_gfx906"),
    *("rocm_sdk_core", "rocm_sdk_libraries", "rocm_sdk_devel", "rocm_profiler", "rocm_sdk_libraries_gfx906"),
    *("zstandard", "pyzstd", "backports", "backports.zstd", "compression.zstd", "rocm_bootstrap", "selector"),
)
"""Everything that is not part of Python and that ``rocm_sdk`` may look for, installed or not."""

LIBRARIES = ("libzstd.so.1", "libzstd.so", "libamdhip64.so.6", "libamdhip64.so", "libhipsparse.so.1")
PROGRAMS = ("rocm_agent_enumerator", "rocminfo", "amdgpu-arch", "offload-arch", "hipcc", "ldconfig", "gcc", "objdump")

CONSTRUCTOR = """
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void leave_mark(void) { close(open("%s/library", O_CREAT | O_WRONLY, 0666)); }
int hip(void) { return 666; }
int sparse(void) { return 666; }
"""


class Planted(msgspec.Struct, frozen=True):
    """A hostile folder, and the folder in which whatever of it runs leaves a file."""

    folder: Path
    marks: Path

    def ran(self) -> list[str]:
        """Return what has run since it was asked last."""
        names = sorted(path.name for path in self.marks.iterdir())
        for name in names:
            (self.marks / name).unlink()
        return names


def plant(place: Path) -> Planted:
    """Make a hostile folder below ``place``."""
    planted = Planted(place / "hostile", place / "marks")
    planted.folder.mkdir(parents=True)
    planted.marks.mkdir()
    for name in MODULES:
        _plant_module(planted, name)
    _plant_libraries(planted)
    for name in PROGRAMS:
        program = planted.folder / name
        program.write_text(f"#!/bin/sh\n: > '{planted.marks}/{name}'\necho gfx906\n")
        program.chmod(0o755)
    return planted


def _plant_module(planted: Planted, name: str) -> None:
    folder = planted.folder.joinpath(*name.split("."))
    (folder / "lib").mkdir(parents=True, exist_ok=True)
    (folder / "share/therock").mkdir(parents=True, exist_ok=True)
    mark = f"open({str(planted.marks / name)!r}, 'w').close()\n"
    (folder / "__init__.py").write_text(mark + ("" if "." in name else "__path__ = [__file__.rpartition('/')[0]]\n"))
    (folder / "_cli.py").write_text(mark)
    (folder / "share/therock/dist_info.json").write_text('{"dist_amdgpu_targets": "gfx666"}')


def _plant_libraries(planted: Planted) -> None:
    source = planted.marks.with_name("library.c")
    source.write_text(CONSTRUCTOR % planted.marks)
    built = planted.folder / LIBRARIES[0]
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(built), str(source)], check=True)
    data = built.read_bytes()
    for folder in (planted.folder, *planted.folder.glob("_rocm*/lib")):
        for name in LIBRARIES:
            (folder / name).write_bytes(data)
            (folder / name).chmod(0o755)
