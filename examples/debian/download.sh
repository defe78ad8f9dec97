#!/bin/sh
# Downloads the packages of packages.txt into a folder (default: the checkout's .cache/debs), without installing any.
# Needs apt with Debian 12's sources. Packages that are there already are not fetched again.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dest=${1:-$here/../../.cache/debs}
mkdir -p "$dest"
cd "$dest"

names=$(sed 's/#.*//' "$here/packages.txt")
missing=""
for name in $names; do
    ls "${name}"_*.deb >/dev/null 2>&1 || missing="$missing $name"
done
[ -z "$missing" ] && exit 0

# apt drops to the user _apt, which cannot write into a folder of root's; downloads are verified all the same.
apt_get=$here/../../scripts/apt-get.sh
fetch() { sh "$apt_get" -o APT::Sandbox::User=root -q download $missing; }
fetch || { sh "$apt_get" -q update && fetch; }
