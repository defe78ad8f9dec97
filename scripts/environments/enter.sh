#!/bin/bash
# Runs a check of this folder in a chroot, without a network and with nothing of the caller's environment. What it needs
# is mounted in namespaces of its own: the mounts vanish with them, however the run ends, and so does all that it wrote.
#
#   enter.sh CHROOT DIST CHECK USER PREFIX PYTHON [ARGUMENT...]
#
# DIST is seen as /mnt/dist, CHECK is the name of a script here. PREFIX is a folder of this machine that has PYTHON in it,
# which the chroot sees in the same place; "" for a Python of the chroot's own.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${ENVIRONMENTS_NAMESPACE:-}" ]; then
    ENVIRONMENTS_NAMESPACE=yes exec unshare --mount --net --pid --fork --kill-child bash "$0" "$@"
fi
chroot=$1
dist=$2
check=$3
user=$4
prefix=$5
shift 5

mount -t proc proc "$chroot/proc"
mount --rbind /dev "$chroot/dev"
mount -t tmpfs -o mode=755 tmpfs "$chroot/mnt"
mkdir -m 755 "$chroot"/mnt/{dist,checks} "$chroot/mnt/home"
mount -o bind,ro "$dist" "$chroot/mnt/dist"
mount -o bind,ro "$here" "$chroot/mnt/checks"
if [ -n "$prefix" ]; then
    mkdir -p "$chroot$prefix"
    mount -o bind,ro "$prefix" "$chroot$prefix"
fi
chroot "$chroot" chown "$user:$user" /mnt/home
chroot --userspec="$user:$user" --groups="$user" "$chroot" env -i -C /mnt/home HOME=/mnt/home PATH=/usr/bin:/bin LANG=C.UTF-8 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 sh "/mnt/checks/$check" "$@" </dev/null
