#!/bin/bash
# Builds the extension against the SDK's pip-installed packages, audits the wheel, and imports it with an empty
# environment. The SDK may be Debian's ROCm (`make debian`), whose clang is LLVM's own.
#
#   examples/hip-extension/run.sh [PACKAGES] [WORK_FOLDER]
#
# PACKAGES is the folder of rocm-sdk-core, rocm-sdk-devel and the selector; by default what `make debian` left.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$here/../.." && pwd)
packages=${1:-$checkout/.cache/debian-run/away/packages/dist}
if [ ! -d "$packages" ]; then
    echo "$packages: no such folder. Run \`make debian\`, or give the folder of an SDK's packages." >&2
    exit 2
fi
packages=$(cd "$packages" && pwd)
work=${2:-$checkout/.cache/hip-extension-run}
bin=$checkout/.venv/bin

step() { printf '\n== %s\n' "$*"; }

rm -rf "$work"
mkdir -p "$work"
cd "$work"
work=$PWD

step "an environment with the SDK to build against"
"$bin/python" -m venv env
env/bin/pip install --quiet scikit-build-core build
env/bin/pip install --quiet --no-index --find-links "$packages" 'rocm[libraries,devel]'

step "build the wheel"
cp -r "$here" source
# Left alone, scikit-build-core names the wheel after this machine, linux_x86_64. A tag that promises too much, or less
# than the files need, is a finding of the audit.
tag=$(env/bin/python -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
# Without a GPU nothing can tell hipcc what to compile for, so it is told.
env -i PATH="$work/env/bin:/usr/bin:/bin" HOME="$work" HCC_AMDGPU_TARGET=gfx906,gfx1030 CXX=hipcc \
    CMAKE_PREFIX_PATH="$(env/bin/rocm-sdk path --cmake)" CMAKE_ARGS="-DGPU_TARGETS=gfx906;gfx1030" \
    python -m build --wheel --no-isolation -Cwheel.tags="$tag-$tag-manylinux_2_5_x86_64" \
    --outdir dist source >build.log 2>&1 || { tail -n 30 build.log; exit 1; }
ls dist

step "the audit finds nothing wrong, and a repair has nothing to do"
"$bin/rocwheel" audit dist --with "$packages"
"$bin/rocwheel" repair --check dist/*.whl --output repaired --with "$packages"
unzip -q dist/*.whl 'hip_saxpy/*.so' -d unpacked
"$bin/rocwheel" runpath show unpacked/hip_saxpy/*.so
"$bin/rocwheel" targets runs-on gfx1030 unpacked/hip_saxpy/*.so

step "installed elsewhere, it loads with an empty environment"
"$bin/python" -m venv user
user/bin/pip install --quiet --no-index --find-links "$packages" dist/*.whl
env -i user/bin/python - <<'PY'
from hip_saxpy import saxpy

try:
    print(saxpy(2.0, [1.0, 2.0], [10.0, 20.0]))
except RuntimeError as e:
    print("HIP says:", e)
PY
