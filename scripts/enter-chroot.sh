#!/bin/bash
# Runs a command in a chroot, without a network and with nothing of the caller's environment but what is given. What it
# needs is mounted in namespaces of its own: the mounts vanish with them, however the run ends.
#
#   enter-chroot.sh [-s NAME=FOLDER]... [-p PREFIX] [-h FOLDER] CHROOT USER COMMAND [ARGUMENT...]
#
#   -s NAME=FOLDER   the folder is seen as /mnt/NAME, which can't be written
#   -p PREFIX        a folder of this machine is seen in the same place, such as that of an interpreter
#   -h FOLDER        /mnt/home, where the command runs, is this folder and so on disk, with all that is written there;
#                    otherwise it is in memory, and vanishes
set -euo pipefail
if [ -z "${ENTER_CHROOT_NAMESPACE:-}" ]; then
    ENTER_CHROOT_NAMESPACE=yes exec unshare --mount --net --pid --fork --kill-child bash "$0" "$@"
fi
shown=()
prefix=
home=
while getopts s:p:h: option; do
    case $option in
        s) shown+=("$OPTARG") ;;
        p) prefix=$OPTARG ;;
        h) home=$OPTARG ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
chroot=$1
user=$2
shift 2

mount -t proc proc "$chroot/proc"
mount --rbind /dev "$chroot/dev"
mount -t tmpfs -o mode=755 tmpfs "$chroot/mnt"
for one in ${shown[@]+"${shown[@]}"}; do
    mkdir -m 755 "$chroot/mnt/${one%%=*}"
    mount -o bind,ro "${one#*=}" "$chroot/mnt/${one%%=*}"
done
if [ -n "$prefix" ]; then
    mkdir -p "$chroot$prefix"
    mount -o bind,ro "$prefix" "$chroot$prefix"
fi
mkdir -m 755 "$chroot/mnt/home"
if [ -n "$home" ]; then mount --bind "$home" "$chroot/mnt/home"; fi
chroot "$chroot" chown "$user:" /mnt/home
chroot --userspec="$user" "$chroot" env -i -C /mnt/home HOME=/mnt/home PATH=/usr/bin:/bin LANG=C.UTF-8 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 "$@" </dev/null
