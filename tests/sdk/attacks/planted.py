"""A folder full of what an attacker would plant: modules, packages of ROCm, metadata, libraries, programs.

Each leaves a mark when it runs.
"""

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
DISTS = ("rocm", "rocm_sdk_core", "rocm_sdk_libraries", "rocm_sdk_devel", "rocm_profiler", "rocm_sdk_device_gfx906")
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
        imports = "# rocm_sdk_core._cli rocm_profiler._cli\n"  # as console scripts have it
        program.write_text(f"#!/bin/sh\n{imports}: > '{planted.marks}/{name}'\necho gfx906\n")
        program.chmod(0o755)
    for name in DISTS:
        _plant_metadata(planted.folder / f"{name}-7.2.0.dist-info", name)
    return planted


def _plant_metadata(folder: Path, name: str) -> None:
    """Make metadata that say of a package of the SDK that its programs, and the file it came from, are planted ones."""
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 7.2.0\n")
    programs = "".join(f"../{folder.parent.name}/{program},,\n" for program in PROGRAMS)
    (folder / "RECORD").write_text(f"{programs}planted-file,,\n")
    (folder / "direct_url.json").write_text(f'{{"url": "{(folder.parent / "x.whl").as_uri()}", "archive_info": {{}}}}')


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
