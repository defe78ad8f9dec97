"""Artifacts of a build for Windows, with small DLLs and programs under the names of real ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.artifacts import artifact
from tests.support.pe_files import pe_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["DLL", "EXE", "write_windows_sdk"]

DLL = pe_file("small.dll", "KERNEL32.dll")
EXE = pe_file("small.exe", "KERNEL32.dll", "amdhip64_7.dll", is_dll=False)

_SDK: dict[str, dict[str, bytes]] = {
    "base_lib_generic": {"share/base.txt": b"base"},
    "core-hip_lib_generic": {
        "bin/amdhip64_7.dll": DLL,
        "bin/hiprtc07013.dll": DLL,
        "bin/hiprtc-builtins07013.dll": DLL,
    },
    "core-hip_run_generic": {"bin/hipcc.exe": EXE, "bin/hipconfig.exe": EXE},
    "core-hip_dev_generic": {"include/hip/hip_runtime.h": b"// hip", "lib/amdhip64.lib": b"!<arch>\n"},
    "amd-llvm_lib_generic": {"bin/amd_comgr0713.dll": DLL},
    "blas_lib_generic": {
        "bin/rocblas.dll": DLL,
        "bin/hipblas.dll": DLL,
        "bin/libhipblaslt.dll": DLL,
        "bin/test_plugins/custom/plugin.dll": DLL,
    },
    "blas_dev_generic": {"lib/hipblas.lib": b"!<arch>\n", "lib/libhipblaslt.dll.a": b"!<arch>\n"},
    "blas_lib_gfx1100": {"bin/rocblas/library/TensileLibrary_gfx1100.dat": b"kernels"},
}


def write_windows_sdk(folder: Path, more: Mapping[str, Mapping[str, bytes]] | None = None) -> Path:
    """Write the artifacts of a small SDK for Windows and return their folder; ``more`` adds artifacts and files."""
    for name, files in (_SDK | {name: {**_SDK.get(name, {}), **added} for name, added in (more or {}).items()}).items():
        artifact(folder, name, files)
    return folder
