#!/bin/bash
# From Bazel to JAX: writes the settings and rules, builds with Bazel, assembles both wheels, audits them installed without
# the SDK, installs the SDK's packages beside them and lets JAX discover the plugin, with an empty environment.
#
#   examples/bazel/run.sh SDK_DIST [WORK_FOLDER]      SDK_DIST: the packages that `rocwheel build` made
#
# Needs Debian's bazel-bootstrap, g++, and a Python with rocwheel (ROCWHEEL_PYTHON, by default the checkout's). With
# JAX_WHEELS, a folder with CPU JAX and what it needs, nothing is downloaded.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$here/../.." && pwd)
sdk=$(cd "$1" && pwd)
work=${2:-$checkout/.cache/bazel-run}
python=${ROCWHEEL_PYTHON:-$checkout/.venv/bin/python}
rocwheel=("$python" -m rocwheel)
version=0.12.0

step() { printf '\n== %s\n' "$*"; }

rm -rf "$work/source" "$work/dist" "$work/builder" "$work/env"
mkdir -p "$work"
cp -r "$here" "$work/source"
work=$(cd "$work" && pwd)
cd "$work/source"

step "an SDK to build against"
"$python" -m venv "$work/builder"
"$work/builder/bin/pip" install --quiet --no-index --find-links "$sdk" 'rocm[devel]'
rocm=$("$work/builder/bin/rocm-sdk" path --root)
mkdir sdk
cp "$sdk"/rocm_sdk_core-*.whl sdk/

step "the settings and the Starlark rules"
"${rocwheel[@]}" jax bazelrc --settings rocm.toml --output rocm.bazelrc
"${rocwheel[@]}" jax starlark --quiet rocm_wheel
cat >.bazelrc.user <<RC
build --repo_env=ROCM_PATH=$rocm
build --repo_env=ROCWHEEL_PYTHON=$python
build --ui_event_filters=-info
RC

step "build and assemble, by the commands that rocwheel prints"
git init --quiet . && git add . && git -c user.name=example -c user.email=example@localhost commit --quiet -m example
"${rocwheel[@]}" jax commands --settings rocm.toml --version $version --with "$sdk" --output "$work/dist" >build.sh
bazel() { command bazel --output_user_root="$work/bazel" "$@"; }
rocwheel() { "${rocwheel[@]}" "$@"; }
. ./build.sh
for library in bazel-bin/pjrt/*.so bazel-bin/example/*.so; do
    readelf -d "$library" | grep -E 'RUNPATH|RPATH'
done

step "the wheel as a build action"
bazel build --config=rocm_build --config=python311 //:pjrt_wheel
bazel shutdown

step "without the SDK, the audit tells what is missing before anyone runs JAX"
"$python" -m venv "$work/env"
"$work/env/bin/pip" install --quiet ${JAX_WHEELS:+--no-index --find-links "$JAX_WHEELS"} jax
"$work/env/bin/pip" install --quiet --no-index "$work"/dist/*pjrt*.whl \
    "$work"/dist/*plugin*"$("$python" -c 'import sys; print("cp3%d" % sys.version_info[1])')"-*.whl
if "${rocwheel[@]}" audit --select unresolved-library "$work/env"; then
    echo "the audit did not miss the SDK" >&2
    exit 1
fi

step "install the SDK, and run JAX with an empty environment"
"$work/env/bin/pip" install --quiet --no-index --find-links "$sdk" rocm-sdk-core
"${rocwheel[@]}" audit --select unresolved-library "$work/env"
env -i "$work/env/bin/python" - <<'PY'
import jax
from jax_rocm7_plugin import _example

print("extension module:", _example.hip_status())
try:
    jax.devices()
except RuntimeError as e:
    print("JAX:", e)
PY
