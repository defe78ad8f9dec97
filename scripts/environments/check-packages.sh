#!/bin/sh
# Installs the packages in /mnt/dist with a Python and uses them. The last line that begins with == names the step that failed.
#
#   check-packages.sh PYTHON VERSION
set -eu
python=$1
version=$2
step() { printf '== %s\n' "$*"; }

step "no compiler"
for name in cc gcc clang; do if command -v $name; then exit 1; fi; done
step "venv"
"$python" -m venv env
step "pip install"
env/bin/pip install --quiet --no-index --find-links /mnt/dist "rocm[libraries,devel,profiler,device-gfx906]==$version"
step "import rocm_sdk"
[ "$(env/bin/python -c 'import rocm_sdk; print(rocm_sdk.__version__)')" = "$version" ]
step "rocm-sdk version"
[ "$(env/bin/rocm-sdk version)" = "$version" ]
step "rocm-sdk init"
env/bin/rocm-sdk init
step "rocm-sdk test"
env/bin/rocm-sdk test
step "rocm-sdk doctor"
env/bin/rocm-sdk doctor
step "pip uninstall"
env/bin/pip uninstall --quiet --yes rocm rocm-sdk-core rocm-sdk-libraries rocm-sdk-device-gfx906 rocm-sdk-devel rocm-profiler
left=$(find env/lib env/bin -iname '*rocm*')
if [ -n "$left" ]; then echo "left behind: $left"; exit 1; fi
