#!/bin/sh
# apt-get for another release of Debian than the machine's: lists, sources and archives of its own in a folder, the
# mirror that the machine's apt uses. Nothing is installed, and the machine's own lists stay as they are.
#
#   apt.sh FOLDER ARGUMENT...
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift

mirror=$(bash "$here/../../scripts/make-chroot.sh" --mirror)
[ -n "$mirror" ] || { echo "apt.sh: this machine's apt has no archive of Debian, or no lists of it yet" >&2; exit 1; }

mkdir -p "$folder/lists/partial" "$folder/archives/partial" "$folder/sources"
: >"$folder/status" # as if nothing were installed
cat >"$folder/sources/debian.sources" <<END
Types: deb
URIs: $mirror
Suites: sid experimental
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
cat >"$folder/apt.conf" <<END
Dir::State "$folder";
Dir::State::Lists "$folder/lists";
Dir::State::status "$folder/status";
Dir::Cache "$folder";
Dir::Cache::archives "$folder/archives";
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$folder/sources";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
APT::Sandbox::User "root";
APT::Architectures { "amd64"; };
Acquire::Languages "none";
END
APT_CONFIG=$folder/apt.conf exec sh "$here/../../scripts/apt-get.sh" "$@"
