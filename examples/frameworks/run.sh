#!/bin/bash
# Published wheels of frameworks, repaired, use the packages of Debian experimental's ROCm 7 in a chroot with sid.
#
#   examples/frameworks/run.sh DIST [FOLDER]     (default: .cache/frameworks; the chroot is kept there)
#
# DIST has the packages that examples/debian-sid/build.sh experimental makes. Needs root and about 20 GB of disk. No GPU.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$here/../.." && pwd)
dist=$(cd "$1" && pwd)
folder=${2:-$checkout/.cache/frameworks}
bin=$checkout/.venv/bin
[ "$(id -u)" = 0 ] || { echo "run.sh: a chroot needs root" >&2; exit 1; }

step() { printf '\n== %s\n' "$*"; }

step "make a chroot with Debian sid"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
"$here/../debian-sid/chroot.sh" "$folder/chroot"
python=$(chroot "$folder/chroot" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')

step "download the wheels for Python $python"
rm -rf "$folder/wheels" # wheels of other versions; pip's cache has what is the same
# bitsandbytes alone: the torch that the index has is CUDA's.
download=("$bin/pip" download --quiet --python-version "$python" --only-binary :all: --dest "$folder/wheels")
"${download[@]}" --requirement "$here/wheels.txt"
"${download[@]}" --no-deps bitsandbytes==0.50.2

step "repair those that need ROCm: libraries that nothing has are those that Debian lacks"
rm -rf "$folder/repaired" "$folder/traces"
mkdir -p "$folder/traces"
status=0
"$bin/rocwheel" repair "$folder"/wheels/{jax_rocm7_,bitsandbytes-}*.whl --output "$folder/repaired" --toolkit sdk \
    --with "$(echo "$dist"/rocm_sdk_core-*.whl)" --with "$(echo "$dist"/rocm_sdk_libraries-*.whl)" >"$folder/repair.txt" || status=$?
cut -c 1-200 "$folder/repair.txt"
[ "$status" -le 1 ] || exit "$status"

step "use them in the chroot"
"$here/in-chroot.sh" "$folder" "$dist"

step "what they loaded, and from where"
cd "$checkout"
"$bin/python" -m scripts.framework_table "$folder/traces" --packages "$dist"/rocm_sdk_*.whl
