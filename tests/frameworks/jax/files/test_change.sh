#!/bin/bash
# Tests a change by remote execution; a text of the project's own.
set -ex

given=("$@")
PYTHON="${given[0]}"

pushd "$(realpath ./jax)" || exit
if ! grep -q rocm build/requirements.in; then
    {
        echo "jaxlib"
    } >> build/requirements.in
fi

python3 build/build.py requirements_update --python="${PYTHON}"
python3 build/build.py build --wheels=jax-rocm-plugin --configure_only --python_version="${PYTHON}"

COMMON="--rocm_path=/opt/rocm --verbose"
MORE=(--wheels=jax-rocm-pjrt "--output_path=/wheel house")
JAX_RELEASE=1 python build/build.py build $COMMON "${MORE[@]}" > log 2>&1

python build/build.py build "$@"
if [ -n "$REMOTE" ]; then FLAGS=--rbe; fi
python build/build.py build --wheels=jax-rocm-pjrt $FLAGS
docker run image bash -c "cd /src && python build/build.py build --wheels=jax-rocm-pjrt"

./bazel test --config=rocm //tests:core_test_gpu
