#!/bin/bash
# Installs the repaired wheels of FOLDER and the packages of DIST in FOLDER/chroot, as its plain user, and runs probes.py,
# without a network.
#
#   in-chroot.sh FOLDER DIST
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
dist=$2
home=$folder/home
rm -rf "$home"
mkdir "$home"
trap 'rm -rf "$home"' EXIT
bash "$here/../../scripts/enter-chroot.sh" -s "dist=$dist" -s "wheels=$folder/wheels" -s "repaired=$folder/repaired" \
    -s "probes=$here" -h "$home" "$folder/chroot" user bash /mnt/probes/use.sh /mnt/home
cp "$home"/traces/* "$folder/traces/"
