"""The sources, texts and links of a folder like ``/opt/rocm``; ``@VERSION@`` and the like are filled in."""

from __future__ import annotations

__all__ = ["CLANG", "HIPCC", "LINKS", "TEXTS", "TOOL"]

HIPCC = """
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

CLANG = """
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

TOOL = '#include <stdio.h>\nint main(void) { return puts("a tool of ROCm @VERSION@"), 0; }\n'
"""Prints what it is."""

TEXTS = {
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
"""Texts of files by path; scripts are executable."""

LINKS = {
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
"""Targets of symlinks by path."""
