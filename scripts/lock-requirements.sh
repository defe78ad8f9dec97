#!/usr/bin/env bash
# Writes .ci/requirements.txt: one version of each package that `make LOCKED=1` installs, with the hashes of all its files,
# for every supported Python. Versions that are in the file stay if they suit; --upgrade takes the newest.
# Usage: lock-requirements.sh BIN [--upgrade], where BIN has uv.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$1
shift
# hatchling and editables make the editable installation, which happens without isolation.
build=$(mktemp --suffix=.in)
trap 'rm -f "$build"' EXIT
printf 'hatchling>=1.27\neditables\n' > "$build"
"$bin/uv" pip compile pyproject.toml "$build" --extra dev --extra release --extra security --universal --python-version 3.10 \
  --generate-hashes --no-annotate --quiet --custom-compile-command "bash scripts/lock-requirements.sh .venv/bin" \
  --output-file .ci/requirements.txt "$@"
