#!/bin/sh
# Unpack AMD's comgr of two releases, a library of 1.3 GB and a small one, from Debian into .cache/, for the tests and benchmarks of
# device code. The later comgr comes with all libraries that it needs: it is loaded by their loader.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$here/.." && mkdir -p .cache && cd .cache && pwd)

fetch() { # fetch FOLDER PACKAGE...: unpack packages into one folder, unless it is there
    folder=$cache/$1
    shift
    [ -d "$folder" ] && return
    mkdir -p "$cache/debs" "$folder.part"
    for package in "$@"; do
        (cd "$cache/debs" && { ls "${package}"_*.deb >/dev/null 2>&1 || sh "$here/apt-get.sh" download "$package"; })
        dpkg-deb -x "$cache"/debs/"${package}"_*.deb "$folder.part"
    done
    mv "$folder.part" "$folder"
}

fetch libamd-comgr2 libamd-comgr2
fetch librocsparse0 librocsparse0
fetch librocrand1 librocrand1

[ -d "$cache/comgr" ] && exit
apt=$cache/comgr-apt
mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/state"
: >"$apt/state/status"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep '/debian/$' | head -n 1)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$apt/sources.list"
cat >"$apt/apt.conf" <<END
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State "$apt/state";
Dir::State::Lists "$apt/lists";
Dir::State::status "$apt/state/status";
Dir::Cache "$apt";
END
APT_CONFIG=$apt/apt.conf
export APT_CONFIG
sh "$here/apt-get.sh" update
cache=$apt
fetch comgr libamd-comgr3 libc6 libgcc-s1 libllvm21 libstdc++6 libzstd1 zlib1g libedit2 libffi8 libtinfo6 libxml2-16 \
    libz3-4 libbsd0 libmd0
mv "$apt/comgr" "${apt%-apt}"
rm -r "$apt"
