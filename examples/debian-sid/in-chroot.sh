#!/bin/bash
# Runs check.sh in a chroot, as root or as its plain user, with DIST and the examples mounted into it.
#
#   in-chroot.sh CHROOT DIST USER        (USER: root or user)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
chroot=$1
dist=$2
user=$3
if [ -z "${IN_CHROOT_NAMESPACE:-}" ]; then
    # The mounts vanish with the namespace, however the run ends.
    IN_CHROOT_NAMESPACE=yes exec unshare --mount bash "$0" "$@"
fi
mkdir -p "$chroot"/mnt/{dist,examples}
mount --bind "$dist" "$chroot/mnt/dist"
mount --bind "$here/.." "$chroot/mnt/examples"
mount -t proc proc "$chroot/proc"
mount --rbind /dev "$chroot/dev"

home=$([ "$user" = root ] && echo /root || echo "/home/$user")
work=$home/work-$user
rm -rf "$chroot$work"
chroot "$chroot" su - "$user" -c "env -i PATH=/usr/bin:/bin MORE_PACKAGES='${MORE_PACKAGES:-}' bash /mnt/examples/debian-sid/check.sh /mnt/dist /mnt/examples $work"
rm -rf "$chroot$work"
