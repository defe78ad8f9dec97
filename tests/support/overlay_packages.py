"""Packages with whole libraries for each target: small artifacts, builds, environments, and what processes load."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

from tests.support.artifacts import artifact, build_packages
from tests.support.fat_libraries import build_fat_library, make_bundle

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["KERNELS", "add_library", "build_overlays", "mapped", "run_python", "unpack"]

KERNELS = "lib/rocblas/library/TensileLibrary_gfx906.dat"

_BESIDE = r"""
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <string.h>
static int find(struct dl_phdr_info *info, size_t size, void *found) {
    if (strstr(info->dlpi_name, "rocblas.")) snprintf(found, 4096, "%s", info->dlpi_name);
    return 0;
}
/* Say whether there are kernels beside the library, which is found as rocBLAS finds itself. */
int has_kernels(const char *name) {
    char path[8192] = "";
    dl_iterate_phdr(find, path);
    *strrchr(path, '/') = 0;
    strcat(strcat(path, "/rocblas/library/"), name);
    FILE *file = fopen(path, "r");
    return file != 0;
}
"""

_PRINT_MAPPED = """
import re
lines = open("/proc/self/maps").read().splitlines()
print(*sorted({line.rpartition("/")[2] for line in lines if re.search("_rocm_sdk_[a-z]+/", line)}))
"""


def add_library(stage: Path, soname: str, units: Sequence[str] = (), needed: Sequence[str] = (), *words: str) -> None:
    """Link ``lib/SONAME`` into an artifact: with a bundle for each of ``units``, and libraries of it that it needs."""
    path = stage / "lib" / soname
    options = [f"-Wl,-soname,{soname}", "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed", f"-L{path.parent}"]
    options += [f"-l:{name}" for name in needed]
    if units:
        bundles = [make_bundle(number, text) for number, text in enumerate(units)]
        build_fat_library(path, bundles, options=[*options, *words])
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        source = b'.section .note.GNU-stack,"",@progbits\n'
        command = ["gcc", "-shared", "-nostdlib", "-x", "assembler", "-", "-o", str(path), *options, *words]
        subprocess.run(command, input=source, check=True)


def build_overlays(folder: Path, *options: str) -> tuple[Path, str]:
    """Build packages of two libraries with device code, one of which needs the other, and of two that need these."""
    if not (folder / "in").exists():
        source = folder / "beside.c"
        source.write_text(_BESIDE)
        stage = artifact(folder / "in", "blas_lib_generic", {KERNELS: b"kernels"})
        beside = ("-x", "c", str(source), "-fPIC", "-fno-builtin", "-fno-stack-protector")
        add_library(stage, "librocblas.so.5", ["gfx906 gfx90a gfx1030", "gfx906 gfx90a gfx1030"], (), *beside)
        add_library(stage, "libhipblas.so.3", needed=["librocblas.so.5"])
        add_library(stage, "librocsparse.so.1", ["gfx906 gfx1030"], ["librocblas.so.5"])
        add_library(stage, "libhipsparse.so.4", needed=["librocsparse.so.1"])
        artifact(folder / "in", "core-hip_dev_generic", {"lib/cmake/hip/hip-config.cmake": b""})
        core = artifact(folder / "in", "core-hip_lib_generic")
        add_library(core, "libamdhip64.so.7")
    return build_packages(folder, "--split-device=overlay", "--selector", "wheel", *options)


def unpack(dist: Path, site: Path, *devices: str) -> Path:
    """Unpack the packages that everybody gets into ``site``, and those of some targets."""
    names = ["rocm-", "rocm_sdk_core-", "rocm_sdk_libraries-", *(f"rocm_sdk_device_{device}-" for device in devices)]
    for name in names:
        [wheel] = dist.glob(f"{name}*.whl")
        zipfile.ZipFile(wheel).extractall(site)
    return site


def run_python(site: Path, code: str, gpus: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a fresh process that has the packages in ``site`` and these GPUs."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ROC", "HIP_", "LD_"))}
    variables = {"PYTHONPATH": str(site), "ROCM_BOOTSTRAP_FORCE_GFX_ARCH": gpus, "PYTHONWARNINGS": "always"}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=inherited | variables | environ, capture_output=True, text=True, check=False, timeout=60
    )


def mapped(site: Path, code: str, gpus: str, **environ: str) -> list[str]:
    """Return which of the packages' libraries a fresh process has mapped after ``code``, by their names."""
    done = run_python(site, code + _PRINT_MAPPED, gpus, **environ)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
