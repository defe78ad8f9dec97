#!/bin/bash
# Installs the repaired wheels of FOLDER and the packages of DIST in FOLDER/chroot, as its plain user, and runs probes.py.
# There is no network, and the mounts vanish with the namespace, however the run ends.
#
#   in-chroot.sh FOLDER DIST
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
dist=$2
chroot=$folder/chroot
if [ -z "${IN_CHROOT_NAMESPACE:-}" ]; then
    IN_CHROOT_NAMESPACE=yes exec unshare --mount --net bash "$0" "$@"
fi
for name in dist wheels repaired probes; do mkdir -p "$chroot/mnt/$name"; done
mount --bind "$dist" "$chroot/mnt/dist"
mount --bind "$folder/wheels" "$chroot/mnt/wheels"
mount --bind "$folder/repaired" "$chroot/mnt/repaired"
mount --bind "$here" "$chroot/mnt/probes"
mount -t proc proc "$chroot/proc"
mount --rbind /dev "$chroot/dev"

work=/home/user/frameworks
rm -rf "${chroot:?}$work"
chroot "$chroot" su - user -c "env -i PATH=/usr/bin:/bin HOME=/home/user bash /mnt/probes/use.sh $work"
cp "$chroot$work"/traces/* "$folder/traces/"
rm -rf "${chroot:?}$work"
