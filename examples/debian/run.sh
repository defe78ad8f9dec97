#!/bin/bash
# Debian's real ROCm packages become Python packages, which are installed into a clean environment and used there:
# nothing is installed on the machine, and nothing is compiled by rocwheel.
#
#   examples/debian/run.sh [WORK_FOLDER]      (default: .cache/debian-run, emptied first)
#
# Needs: Debian 12 with apt, Python with venv, perl, file, and a C++ compiler's headers (g++, cmake), as every ROCm does.
# Run as root, it also hides the machine's own LLVM and ROCm from every check, in a mount namespace of its own.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$here/../.." && pwd)
work=${1:-$checkout/.cache/debian-run}
bin=$checkout/.venv/bin
debs=$checkout/.cache/debs

step() { printf '\n== %s\n' "$*"; }

step "download Debian's packages (none is installed)"
"$here/download.sh" "$debs"
packages=()
for name in $(sed 's/#.*//' "$here/packages.txt"); do
    packages+=("$debs/${name}"_*.deb)
done
echo "${#packages[@]} packages in $debs"

rm -rf "$work"
mkdir -p "$work"
cd "$work"
work=$PWD

step "make artifacts of them"
"$bin/rocwheel" artifacts import "${packages[@]}" --output artifacts --bundle-sysdeps

step "build the Python packages"
"$bin/rocwheel" build --artifact-dir artifacts --dest-dir packages

step "install them into a clean environment"
"$bin/python" -m venv env
env -i PATH=/usr/bin:/bin HOME="$work" env/bin/pip install --quiet --no-index --find-links packages/dist "rocm[libraries,devel]"
env/bin/pip list 2>/dev/null

# The checks see neither this shell's variables nor, as root, the machine's own LLVM and ROCm.
if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
    isolated=(unshare --mount bash "$here/hide-llvm.sh")
else
    isolated=()
fi
check() {
    "${isolated[@]}" env -i PATH="$work/env/bin:/usr/bin:/bin" HOME="$work" bash "$here/check.sh" "$work" "$here"
}
check

step "move away everything that they were made from, and check again"
mkdir away
mv artifacts packages away/
check

step "uninstall leaves nothing behind"
env/bin/pip uninstall --quiet --yes rocm rocm-sdk-core rocm-sdk-libraries rocm-sdk-devel
left=$(find env/lib -iname '*rocm*')
if [ -n "$left" ]; then
    echo "left behind: $left"
    exit 1
fi
printf '\nAll of it works. The packages are in %s.\n' "$work/away/packages/dist"
