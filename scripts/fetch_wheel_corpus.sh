#!/usr/bin/env bash
# Downloads the published wheels that the long tests audit and repair, into .cache/wheels.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
target=.cache/wheels
mkdir -p "$target"

fetch() {  # fetch PYTHON_VERSION REQUIREMENT...
    local version=$1
    shift
    for requirement in "$@"; do
        "$python" -m pip download --quiet --no-deps --only-binary :all: --dest "$target" --python-version "$version" \
            --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_17_x86_64 \
            "$requirement"
    done
}

fetch 3.12 jax-rocm7-pjrt==0.12.0 jax-rocm60-pjrt==0.5.0
fetch 3.11 jax-rocm7-plugin==0.10.2 jax-rocm60-plugin==0.5.0
fetch 3.11 numpy==2.4.6 scipy==1.17.1 lxml==6.1.3 pillow==13.0.0 shapely==2.2.0
"$python" -m pip download --quiet --no-deps --only-binary :all: --dest "$target/windows" --python-version 3.12 --platform win_amd64 \
    numpy==2.5.5 scipy==1.18.1 lxml==6.1.3 pillow==13.0.0 onnxruntime==1.32.0 pywin32==312
