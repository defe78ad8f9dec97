#!/usr/bin/env bash
# Builds the sdist, and from it the wheel, into dist/, and checks them: their metadata, and the installed wheel in a clean
# environment and a folder without the checkout. Usage: check-distributions.sh BIN, where BIN has build, twine and mypy.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(realpath "$1")
root=$PWD
rm -rf dist
"$bin/python" -m build --outdir dist .
"$bin/python" -m twine check --strict dist/*

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wheel=$(realpath dist/*.whl)
"$bin/python" -m venv "$work/env"
"$work/env/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"
cp examples/python-api/package_sdk.py "$work"
cd "$work"
unset PYTHONPATH
where=$(env/bin/python -c 'import rocwheel; print(rocwheel.__file__)')
case $where in
  "$work"/env/*) ;;
  *) echo "rocwheel comes from $where, expected $work/env" >&2; exit 1 ;;
esac
env/bin/rocwheel about
env/bin/rocwheel demo --dest-dir demo --quiet > demo.log || { cat demo.log >&2; exit 1; }
tail -n 3 demo.log
sample=$(env/bin/python -c 'from pathlib import Path; import rocwheel; print(Path(rocwheel.__file__).parent / "sample")')
env/bin/python package_sdk.py "$sample" packages
"$bin/python" -m mypy --strict --python-executable env/bin/python package_sdk.py

cd "$root"
name=$(basename "$wheel")
version=$("$work/env/bin/python" -c 'import rocwheel; print(rocwheel.__version__)')
case $name in
  "rocwheel-$version-"*) ;;
  *) echo "$name is not of version $version, which src/rocwheel/__init__.py names" >&2; exit 1 ;;
esac
ls -l dist
