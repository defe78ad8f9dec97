#!/bin/bash
# Makes a folder with a release of Debian in it, to be used as a chroot: the release's smallest system with apt and the
# given packages, from the mirror that this machine's apt uses. A folder that holds them already is kept. What is made is
# complete or not there, and nothing is mounted.
#
#   make-chroot.sh RELEASE FOLDER [PACKAGE...]
#   make-chroot.sh --mirror                     prints the mirror
#
# The release experimental is not complete: it is sid with some newer packages. PACKAGE/experimental is one of them.
#
# Needs root; installs mmdebstrap where it is missing. Exit status 3, with the reason, says that none can be made here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

cannot() { echo "no chroot can be made here: $*" >&2; exit 3; }

# The machine's archive of Debian itself: not the one of security updates, and not one of other vendors.
print_mirror() {
    env -u APT_CONFIG apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' |
        grep -v security | sort -u | head -n 1
}

command -v apt-get >/dev/null || cannot "this machine has no apt"
if [ "$1" = --mirror ]; then print_mirror; exit 0; fi

release=$1
folder=$2
shift 2
asked="$release $*"
is_made() { [ -f "$folder/.made-of" ] && [ "$(cat "$folder/.made-of")" = "$asked" ]; }
if is_made; then exit 0; fi

[ "$(id -u)" = 0 ] || cannot "that takes root"
unshare --mount true 2>/dev/null || cannot "this machine allows no mounts (unshare --mount)"
mirror=$(print_mirror || true)
if [ -z "$mirror" ] || ! command -v mmdebstrap >/dev/null; then
    sh "$here/apt-get.sh" update -qq
    mirror=$(print_mirror || true)
fi
[ -n "$mirror" ] || cannot "apt knows no archive of Debian"
command -v mmdebstrap >/dev/null ||
    DEBIAN_FRONTEND=noninteractive sh "$here/apt-get.sh" install -qq -y --no-install-recommends \
        mmdebstrap debian-archive-keyring >/dev/null

# One at a time. What a killed run has left is no use to anybody.
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9
rm -rf "$folder".new.*
if is_made; then exit 0; fi

# Its own mount namespace: whatever ends this, no mount stays behind.
options=$(mktemp)
new=$(mktemp -d "$folder.new.XXXXXX")
trap 'rm -rf "$options" "$new"' EXIT
trap 'exit 143' TERM INT HUP
sources=("$mirror")
if [ "$release" = experimental ]; then
    release=sid
    sources=("deb $mirror sid main" "deb $mirror experimental main")
fi
apt-config dump | grep -E '^Acquire::(http|https|Check-|Retries)' >"$options" || true # a proxy, a mirror's settings
# Signatures are checked. A mirror that is some weeks behind is good enough for tests.
printf '%s\n' 'Acquire::Check-Valid-Until "false";' 'Acquire::Languages "none";' 'APT::Install-Recommends "false";' >>"$options"
chmod 755 "$new"
unshare --mount mmdebstrap --quiet --mode=root --variant=minbase --include="$(IFS=,; echo "$*")" --aptopt="$options" \
    --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' "$release" "$new" "${sources[@]}"
chroot "$new" useradd --create-home --uid 1000 --shell /bin/bash user
chmod 755 "$new/root" # interpreters of the build machine may lie there
printf '%s\n' "$asked" >"$new/.made-of"
rm -rf "$folder"
mv "$new" "$folder"
