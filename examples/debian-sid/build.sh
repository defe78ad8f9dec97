#!/bin/bash
# The ROCm of Debian sid or experimental becomes Python packages, in FOLDER/work-RELEASE/packages/dist.
#
#   build.sh sid|experimental FOLDER      (downloads are kept in FOLDER; work-RELEASE/complete is written last)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "$here/../.." && pwd)/.venv/bin
release=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
work=$folder/work-$release

step() { printf '\n== %s\n' "$*"; }

step "download the packages of $release with all that they depend on (none is installed)"
"$here/download.sh" "$release" "$folder"
mapfile -t packages < <(tail -n +2 "$folder/$release.list" | sed "s|^|$folder/$release/|")
echo "${#packages[@]} packages in $folder/$release"

rm -rf "$work"
mkdir -p "$work"

step "make artifacts of them"
"$bin/rocwheel" artifacts import "${packages[@]}" --output "$work/artifacts" --bundle-sysdeps

step "build the Python packages"
"$bin/rocwheel" build --artifact-dir "$work/artifacts" --dest-dir "$work/packages"
rm -rf "$work/artifacts"
touch "$work/complete"
