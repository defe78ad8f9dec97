#!/usr/bin/env bash
# Writes .ci/requirements.txt, what `make setup` installs, and .ci/requirements-demo.txt, what `make demo` needs of it: one
# version of each package, with the hashes of all its files, for every supported Python. Versions that are in the files stay
# if they suit; --upgrade takes the newest.
# Usage: lock-requirements.sh BIN [--upgrade], where BIN has uv.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$1
shift
# hatchling and editables make the editable installation, which happens without isolation.
build=$(mktemp --suffix=.in)
trap 'rm -f "$build"' EXIT
printf 'hatchling>=1.27\neditables\n' > "$build"

# lock FILE [OPTION...]
lock() {
    local file=$1
    shift
    "$bin/uv" pip compile pyproject.toml "$build" --universal --python-version 3.10 --generate-hashes --no-annotate --quiet \
        --custom-compile-command "bash scripts/lock-requirements.sh .venv/bin" --output-file "$file" "$@"
}

lock .ci/requirements.txt --extra dev --extra release --extra security "$@"
lock .ci/requirements-demo.txt --constraint .ci/requirements.txt --upgrade
