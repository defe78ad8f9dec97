#!/bin/bash
# Makes a folder with Debian sid in it: its Python with pip, a C++ compiler, CMake, and nothing of ROCm or LLVM.
# A folder that is there is kept. Needs root and mmdebstrap.
#
#   chroot.sh CHROOT CACHE
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
chroot=$1
[ -f "$chroot/etc/debian_version" ] && exit 0

if ! command -v mmdebstrap >/dev/null; then
    sh "$here/../../scripts/apt-get.sh" update -qq
    DEBIAN_FRONTEND=noninteractive sh "$here/../../scripts/apt-get.sh" install -qq -y --no-install-recommends mmdebstrap \
        debian-archive-keyring >/dev/null
fi
mirror=$(sh "$here/apt.sh" "$2/apt" --mirror)
rm -rf "$chroot.new"
options=$(mktemp)
trap 'rm -f "$options"' EXIT
apt-config dump | grep -E '^Acquire::(http|https|Check-|Retries)' >"$options" || true # a proxy, a mirror's settings
mmdebstrap --mode=root --aptopt="$options" --variant=apt --include=python3,python3-venv,g++,cmake,make,perl,file,passwd,util-linux \
    --skip=cleanup/apt sid "$chroot.new" "$mirror"
rm -rf "$chroot.new"/var/cache/apt/archives/*.deb
chroot "$chroot.new" useradd --create-home user
mv "$chroot.new" "$chroot"
