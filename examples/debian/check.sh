#!/bin/bash
# Uses the installed packages: self tests, every library, hipcc, CMake. Called by run.sh with WORK_FOLDER and its own.
set -euo pipefail

work=$1
here=$2
cd "$work"
rm -rf build
mkdir build

step() { printf '\n== %s\n' "$*"; }

step "rocm-sdk"
rocm-sdk version
rocm-sdk targets
root=$(rocm-sdk path --root)
echo "root: $root"
rocm-sdk test

step "every shared library loads, each in a process of its own with an empty environment"
env/bin/python - "$root" <<'PY'
import pathlib, subprocess, sys

site = pathlib.Path(sys.argv[1]).parent
libraries = sorted(
    path for name in ("_rocm_sdk_core", "_rocm_sdk_libraries", "_rocm_sdk_devel") for path in (site / name).rglob("*.so*")
    if path.is_file()
)
failed = 0
for path in libraries:
    load = [sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", str(path)]
    done = subprocess.run(load, env={}, capture_output=True, text=True)
    if done.returncode:
        failed += 1
        print(f"{path.relative_to(site)}: {done.stderr.strip().splitlines()[-1]}")
print(f"{len(libraries) - failed} of {len(libraries)} load")
sys.exit(bool(failed))
PY

step "hipcc compiles and links a HIP program for gfx906 and gfx1030"
hipcc -c --offload-arch=gfx906 --offload-arch=gfx1030 "$here/saxpy.cpp" -o build/saxpy.o
hipcc --offload-arch=gfx906 --offload-arch=gfx1030 "$here/saxpy.cpp" -o build/saxpy -Wl,-rpath,"$root/lib"
roc-obj-ls build/saxpy
for target in gfx906 gfx1030; do
    roc-obj-ls build/saxpy | grep -q "amdgcn-amd-amdhsa--$target "
done
build/saxpy

# Without a GPU nothing can tell hipcc what to compile for, so it is told.
export HCC_AMDGPU_TARGET=gfx906,gfx1030
for compiler in hipcc amdclang++ g++; do
    step "CMake's find_package(hip), rocsparse, hiprand and rocprim with $compiler"
    cmake -S "$here" -B "build/$compiler" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$(rocm-sdk path --cmake)" \
        -DGPU_TARGETS="gfx906;gfx1030" -DCMAKE_BUILD_RPATH="$root/lib" -DCMAKE_BUILD_TYPE=Release >"build/$compiler.log" ||
        { cat "build/$compiler.log"; exit 1; }
    grep -- '-- hip .* from' "build/$compiler.log"
    cmake --build "build/$compiler" 2>&1 | tail -n 1
    "build/$compiler/versions"
    if [ "$compiler" != g++ ]; then "build/$compiler/saxpy"; fi
done
