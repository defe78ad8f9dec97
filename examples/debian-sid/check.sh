#!/bin/bash
# Installs the packages in /mnt/dist into a new environment in the current folder and uses them. Runs inside Debian sid,
# called by run.sh.
#
#   [MORE_PACKAGES="rccl ..."] check.sh      (further packages for CMake to find)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export PATH=$PWD/env/bin:/usr/bin:/bin

step() { printf '\n== %s\n' "$*"; }

step "install as $(id -un), $(python3 --version), glibc $(getconf GNU_LIBC_VERSION)"
python3 -m venv env
env/bin/pip install --quiet --no-index --find-links /mnt/dist "rocm[libraries,devel]"
env/bin/pip list 2>/dev/null

step "rocm-sdk test"
rocm-sdk version
rocm-sdk targets
rocm-sdk test
rocm-sdk init
root=$(rocm-sdk path --root)
echo "root: $root"

step "hipcc compiles and links a HIP program for gfx906"
hipcc --version
mkdir -p build
hipcc --offload-arch=gfx906 "$here/../debian/saxpy.cpp" -o build/saxpy -Wl,-rpath,"$root/lib"
"$root/lib/llvm/bin/llvm-objdump" --offloading build/saxpy | grep gfx906
build/saxpy

for compiler in hipcc amdclang++ g++; do
    step "CMake's find_package of every library with $compiler"
    language=$([ "$compiler" = amdclang++ ] && echo ON || echo OFF)
    cmake -S "$here" -B "build/$compiler" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$(rocm-sdk path --cmake)" \
        -DGPU_TARGETS=gfx906 -DCMAKE_HIP_ARCHITECTURES=gfx906 -DWITH_HIP_LANGUAGE="$language" \
        -DCMAKE_HIP_COMPILER="$root/lib/llvm/bin/clang++" -DCMAKE_HIP_COMPILER_ROCM_ROOT="$root" \
        -DMORE_PACKAGES="${MORE_PACKAGES:-}" -DCMAKE_BUILD_RPATH="$root/lib" -DCMAKE_BUILD_TYPE=Release >"build/$compiler.log" 2>&1 ||
        { cat "build/$compiler.log"; exit 1; }
    grep -- '-- .* from /' "build/$compiler.log"
    if grep -- '-- .* from /' "build/$compiler.log" | grep -v " from $root"; then exit 1; fi
    cmake --build "build/$compiler" >"build/$compiler.log" 2>&1 || { cat "build/$compiler.log"; exit 1; }
    tail -n 1 "build/$compiler.log"
    "build/$compiler/versions"
    for program in saxpy language; do
        if [ -x "build/$compiler/$program" ]; then "build/$compiler/$program"; fi
    done
done
printf '\nAll of it works as %s.\n' "$(id -un)"
