#!/bin/bash
# The ROCm of Debian sid or experimental becomes Python packages, which are installed and used in a chroot with sid.
#
#   examples/debian-sid/run.sh sid|experimental [FOLDER]      (default: .cache/debian-newest; downloads are kept there)
#
# Needs root, apt and about 30 GB of disk; mmdebstrap is installed when it is not there. Half an hour on two cores.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$here/../.." && pwd)
release=$1
folder=${2:-$checkout/.cache/debian-newest}

case $release in
    sid) more="" ;;
    experimental) more="rccl" ;;
    *) echo "run.sh: $release is neither sid nor experimental" >&2; exit 2 ;;
esac
[ "$(id -u)" = 0 ] || { echo "run.sh: a chroot needs root" >&2; exit 1; }

step() { printf '\n== %s\n' "$*"; }

"$here/build.sh" "$release" "$folder"
folder=$(cd "$folder" && pwd)
work=$folder/work-$release

step "make a chroot with Debian sid"
"$here/chroot.sh" "$folder/chroot-sid"

for user in user root; do
    mkdir "$work/home"
    bash "$checkout/scripts/enter-chroot.sh" -s "dist=$work/packages/dist" -s "examples=$checkout/examples" -h "$work/home" \
        "$folder/chroot-sid" "$user" env MORE_PACKAGES="$more" bash /mnt/examples/debian-sid/check.sh
    rm -rf "$work/home"
done
printf '\nThe packages are in %s.\n' "$work/packages/dist"
