"""A folder laid out like AMD's own ``/opt/rocm``, of ROCm 6 or 7, with small real programs and libraries.

The names are those of https://rocm.docs.amd.com/en/docs-5.7.0/understand/file_reorg.html, of listings in AMD's issue
trackers, and of the file lists that distributions with the same layout publish.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, NamedTuple

from tests.support.bundles import bundle_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ROCM_6", "ROCM_7", "Release", "make_rocm_prefix"]


class Release(NamedTuple):
    """What differs between the releases that the tree can be of."""

    version: str
    build: int
    """The number behind the version in ``.info/version``."""
    llvm: int
    """LLVM's major version, which names clang's resource folder."""
    libraries: str
    """The SONAMEs of the libraries in ``lib``."""


ROCM_6 = Release(
    "6.4.0",
    47,
    19,
    """
    libhsa-runtime64.so.1 librocprofiler-register.so.0 libamd_comgr.so.3 libamdhip64.so.6 libhiprtc.so.6
    libhiprtc-builtins.so.6 librocm_smi64.so.7 liboam.so.1 libamd_smi.so.25 librocm-core.so.1
    libhsa-amd-aqlprofile64.so.1
    libamdocl64.so.2 libcltrace.so.2 libOpenCL.so.1 librocm-dbgapi.so.0 librocm-debug-agent.so.2 libroctx64.so.4
    libroctracer64.so.4 librocprofiler64.so.1 librocprofiler-sdk.so.0 librocprofiler-sdk-roctx.so.0 librocblas.so.4
    libhipblas.so.2 libhipblaslt.so.0 librocsparse.so.1 libhipsparse.so.1 libhipsparselt.so.0 librocsolver.so.0
    libhipsolver.so.0 librocrand.so.1 libhiprand.so.1 librocfft.so.0 libhipfft.so.0 libMIOpen.so.1 librccl.so.1
    librpp.so.1
    librocalution.so.1 libhiptensor.so.0 librocdecode.so.0 librocjpeg.so.0 libmigraphx_c.so.3
    """,
)
ROCM_7 = Release(
    "7.0.0",
    38,
    20,
    """
    libhsa-runtime64.so.1 librocprofiler-register.so.0 libamd_comgr.so.3 libamdhip64.so.7 libhiprtc.so.7
    libhiprtc-builtins.so.7 librocm_smi64.so.1 liboam.so.1 libamd_smi.so.26 librocm-core.so.1
    libhsa-amd-aqlprofile64.so.1
    libamdocl64.so.2 libcltrace.so.2 libOpenCL.so.1 librocm-dbgapi.so.0 librocm-debug-agent.so.2 libroctx64.so.4
    libroctracer64.so.4 librocprofiler-sdk.so.1 librocprofiler-sdk-roctx.so.1 librocblas.so.5 libhipblas.so.3
    libhipblaslt.so.1 librocroller.so.1 liborigami.so.1 librocsparse.so.1 libhipsparse.so.4 libhipsparselt.so.0
    librocsolver.so.0 libhipsolver.so.1 librocrand.so.1 libhiprand.so.1 librocfft.so.0 libhipfft.so.0 libMIOpen.so.1
    librccl.so.1 librpp.so.2 librocalution.so.1 libhiptensor.so.2 librocdecode.so.1 librocjpeg.so.1 libmigraphx_c.so.3
    """,
)

_NEEDS = {
    "libamdhip64": ("libamd_comgr", "libhsa-runtime64", "librocprofiler-register"),
    "libhiprtc": ("libamd_comgr",),
    "libhipblas": ("librocblas", "librocsolver"),
    "librocblas": ("libamdhip64", "libhipblaslt"),
    "librocsolver": ("librocblas", "libamdhip64"),
    "libMIOpen": ("librocblas", "libhipblaslt", "libamdhip64", "librocrand"),
    "librocalution": ("librocblas", "librocsparse", "librocrand"),
}
"""What libraries need, by the stems of their names; each RUNPATH is AMD's."""

_RUN_PATH = "$ORIGIN:$ORIGIN/../lib:$ORIGIN/../lib64"

_HIPCC = """
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char self[PATH_MAX] = {0}, clang[PATH_MAX + 64];
    readlink("/proc/self/exe", self, sizeof self - 1);
    snprintf(clang, sizeof clang, "%s/../lib/llvm/bin/clang++", dirname(self));
    argv[0] = clang;
    execv(clang, argv);
    perror(clang);
    return 1;
}
"""
"""Calls the clang++ that lies beside its own folder, as hipcc does."""

_CLANG = """
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
    char self[PATH_MAX] = {0}, bitcode[PATH_MAX + 64];
    readlink("/proc/self/exe", self, sizeof self - 1);
    snprintf(bitcode, sizeof bitcode, "%s/../lib/clang/@LLVM@/lib/amdgcn/bitcode/ockl.bc", dirname(self));
    if (access(bitcode, R_OK)) return perror(bitcode), 1;
    return puts("AMD clang version @LLVM@.0.0git"), 0;
}
"""
"""Fails without its device libraries, which it looks for where clang does."""

_TOOL = '#include <stdio.h>\nint main(void) { return puts("a tool of ROCm @VERSION@"), 0; }\n'

_TEXTS = {
    ".info/version": "@VERSION@-@BUILD@\n",
    ".info/version-dev": "@VERSION@-@BUILD@\n",
    "bin/hipcc.pl": "#!/usr/bin/env perl\n",
    "bin/hipconfig.pl": "#!/usr/bin/env perl\n",
    "bin/hipvars.pm": "package hipvars;\n",
    "bin/hipcc_cmake_linker_helper": "#!/bin/bash\n",
    "bin/hipconvertinplace.sh": "#!/bin/bash\n",
    "bin/hipdemangleatp": "#!/bin/bash\n",
    "bin/hipexamine.sh": "#!/bin/bash\n",
    "bin/hipify-perl": "#!/usr/bin/env perl\n",
    "bin/install_precompiled_kernels.sh": "#!/bin/bash\n",
    "bin/roc-obj": "#!/bin/bash\n",
    "bin/roc-obj-extract": "#!/usr/bin/env perl\n",
    "bin/roc-obj-ls": "#!/usr/bin/env perl\n",
    "bin/rocm_agent_enumerator": "#!/usr/bin/env python3\n",
    "bin/rocprofv3": "#!/usr/bin/env python3\n",
    "libexec/amdsmi_cli/amdsmi_cli.py": "#!/usr/bin/env python3\n",
    "libexec/rocm_smi/rocm_smi.py": "#!/usr/bin/env python3\n",
    "libexec/rocm-core/runscript.py": "#!/usr/bin/env python3\n",
    "libexec/hipify/findcode.sh": "#!/bin/bash\n",
    "include/hip/hip_runtime.h": "#pragma once\n#include <hip/hip_version.h>\n",
    "include/hip/hip_version.h": "#define HIP_VERSION_MAJOR @MAJOR@\n",
    "include/hip/amd_detail/amd_hip_runtime.h": "#pragma once\n",
    "include/hsa/hsa.h": "#pragma once\n",
    "include/rocblas/rocblas.h": "#pragma once\n",
    "include/rocm-core/rocm_version.h": "#define ROCM_VERSION_MAJOR @MAJOR@\n",
    "include/rocm_version.h": "#include <rocm-core/rocm_version.h>\n",
    "include/rocprim/rocprim.hpp": "#pragma once\n",
    "include/migraphx/migraphx.h": "#pragma once\n",
    "lib/.hipInfo": "HIP_COMPILER=clang\nHIP_RUNTIME=rocclr\n",
    "lib/cmake/hip/hip-config.cmake": (
        'get_filename_component(hip_ROOT "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)\n'
        "add_library(hip::host INTERFACE IMPORTED)\n"
        'set_target_properties(hip::host PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${hip_ROOT}/include"\n'
        '    INTERFACE_LINK_LIBRARIES "${hip_ROOT}/lib/libamdhip64.so.@MAJOR@")\n'
    ),
    "lib/cmake/hip/hip-config-version.cmake": (
        'set(PACKAGE_VERSION "@VERSION@")\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n'
    ),
    "lib/cmake/rocblas/rocblas-config.cmake": "find_dependency(hip)\n",
    "lib/cmake/AMDDeviceLibs/AMDDeviceLibsConfig.cmake": "set(AMD_DEVICE_LIBS_TARGETS ockl ocml)\n",
    "lib/llvm/lib/cmake/llvm/LLVMConfig.cmake": "set(LLVM_VERSION_MAJOR @LLVM@)\n",
    "lib/llvm/include/llvm/Config/llvm-config.h": "#define LLVM_VERSION_MAJOR @LLVM@\n",
    "lib/llvm/lib/clang/@LLVM@/include/stddef.h": "#pragma once\n",
    "lib/rocmmod": "#%Module1.0\n",
    "share/hip/version": "HIP_VERSION_MAJOR=@MAJOR@\n",
    "share/rocm/cmake/ROCMConfig.cmake": "set(rocm_VERSION @VERSION@)\n",
    "share/doc/hip/LICENSE.txt": "MIT License\n",
    "share/doc/rocblas/LICENSE.md": "MIT License\n",
    "share/miopen/db/gfx942.db.txt": "a=b\n",
    "share/man/man1/hipcc.1": ".TH hipcc 1\n",
    "share/modulefiles/rocm/@VERSION@": "#%Module1.0\n",
    "etc/OpenCL/vendors/amdocl64.icd": "libamdocl64.so\n",
    "hip/lib/cmake/hip/hip-config.cmake": "include(/opt/rocm/lib/cmake/hip/hip-config.cmake)",
    "tests/hip/run.sh": "#!/bin/bash\n",
}

_LINKS = {
    "llvm": "lib/llvm",
    "amdgcn": "lib/llvm/lib/clang/@LLVM@/lib/amdgcn",
    "lib/llvm/bin/clang": "clang-@LLVM@",
    "lib/llvm/bin/clang++": "clang",
    "lib/llvm/bin/amdclang": "clang",
    "lib/llvm/bin/amdclang++": "clang++",
    "lib/llvm/bin/amdclang-cl": "clang",
    "lib/llvm/bin/amdclang-cpp": "clang",
    "lib/llvm/bin/ld.lld": "lld",
    "lib/llvm/bin/amdlld": "lld",
    "lib/llvm/lib/libLLVM.so": "libLLVM.so.@LLVM@.0git",
    "bin/amdclang": "../lib/llvm/bin/amdclang",
    "bin/amdclang++": "../lib/llvm/bin/amdclang++",
    "bin/amdclang-cl": "../lib/llvm/bin/amdclang-cl",
    "bin/amdclang-cpp": "../lib/llvm/bin/amdclang-cpp",
    "bin/amdlld": "../lib/llvm/bin/amdlld",
    "bin/offload-arch": "../lib/llvm/bin/offload-arch",
    "bin/hipcc.bin": "hipcc",
    "bin/rocm-smi": "../libexec/rocm_smi/rocm_smi.py",
    "bin/amd-smi": "../libexec/amdsmi_cli/amdsmi_cli.py",
    "hip/bin/hipcc": "../../bin/hipcc",
    "hip/include/hip": "../../include/hip",
    "hip/lib/libamdhip64.so": "../../lib/libamdhip64.so",
    "rocblas/lib/librocblas.so": "../../lib/librocblas.so",
}

_BITCODE = ("asanrtl", "hip", "ockl", "ocml", "oclc_abi_version_500", "oclc_isa_version_942", "opencl")
_TARGETS = ("gfx90a", "gfx942", "gfx1100")


def make_rocm_prefix(folder: Path, release: Release = ROCM_6) -> Path:
    """Make ``folder/rocm-VERSION``, and the link ``folder/rocm`` to it, as AMD's packages do in ``/opt``; needs gcc.

    Return the folder with the version.
    """
    root = folder / f"rocm-{release.version}"
    for name, text in _TEXTS.items():
        _write(root / _fill(name, release), _fill(text, release).encode())
    for name in _BITCODE:
        _write(root / f"lib/llvm/lib/clang/{release.llvm}/lib/amdgcn/bitcode/{name}.bc", b"BC\xc0\xde" + name.encode())
    for target in _TARGETS:
        _write(root / f"lib/rocblas/library/Kernels_{target}.co", bundle_of(target))
        _write(root / f"lib/rocblas/library/TensileLibrary_{target}.dat", b"table")
    _make_binaries(root, release)
    for name, target in _LINKS.items():
        _link(root / name, _fill(target, release))
    (folder / "rocm").symlink_to(root.name)
    return root


def _make_binaries(root: Path, release: Release) -> None:
    sonames = {soname.partition(".so")[0]: soname for soname in release.libraries.split()}
    library = f"lib/llvm/lib/libLLVM.so.{release.llvm}.0git"
    _compile(root / library, "", "-shared", f"-Wl,-soname,libLLVM.so.{release.llvm}.0git")
    linked = ("-Wl,--no-as-needed", f"-Wl,-rpath,$ORIGIN/../lib:$ORIGIN/../../lib:{root}/lib", str(root / library))
    sources = {"bin/hipcc": _HIPCC, "bin/hipconfig": _TOOL, "bin/hipify-clang": _TOOL, "bin/clinfo": _TOOL}
    sources |= {"bin/rocgdb": _TOOL, "bin/rocminfo": _TOOL, "bin/migraphx-driver": _TOOL}
    compilers = {
        f"lib/llvm/bin/clang-{release.llvm}": _CLANG,
        "lib/llvm/bin/lld": _TOOL,
        "lib/llvm/bin/offload-arch": _TOOL,
    }
    for path, source in sources.items():
        _compile(root / path, _fill(source, release))
    for path, source in compilers.items():
        _compile(root / path, _fill(source, release), *linked)
    for stem in sorted(sonames, key=lambda stem: _depth(stem, sonames)):
        _make_library(root, sonames, stem)


def _depth(stem: str, sonames: dict[str, str]) -> int:
    return 1 + max((_depth(needed, sonames) for needed in _NEEDS.get(stem, ()) if needed in sonames), default=0)


def _make_library(root: Path, sonames: dict[str, str], stem: str) -> None:
    """Make the library with its full version, and its two links."""
    soname = sonames[stem]
    real = root / f"lib/{soname}.0.{root.name.removeprefix('rocm-').replace('.', '0')}"
    needed = [str(root / "lib" / sonames[other]) for other in _NEEDS.get(stem, ()) if other in sonames]
    source = f"int {stem.replace('-', '_')}_version(void) {{ return 1; }}\n"
    options = ("-shared", f"-Wl,-soname,{soname}", f"-Wl,-rpath,{_RUN_PATH}", "-Wl,--no-as-needed", *needed)
    _compile(real, source, *options)
    _link(root / "lib" / soname, real.name)
    _link(root / "lib" / f"{stem}.so", soname)


def _compile(path: Path, source: str, *options: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-O1", "-fPIC", "-Wl,--build-id", "-x", "c", "-", "-x", "none", *options, "-o", str(path)]
    subprocess.run(command, input=source.encode(), check=True, capture_output=True)


def _fill(text: str, release: Release) -> str:
    values = {
        "VERSION": release.version,
        "MAJOR": release.version[0],
        "BUILD": str(release.build),
        "LLVM": str(release.llvm),
    }
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o755 if data.startswith(b"#!") else 0o644)


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
