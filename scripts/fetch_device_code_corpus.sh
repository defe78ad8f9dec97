#!/bin/sh
# Unpack AMD's comgr and a library of 1.3 GB from Debian 12 into .cache/, for the tests and benchmarks of device code.
set -eu
cache=$(dirname "$0")/../.cache
for package in libamd-comgr2 librocsparse0; do
    [ -d "$cache/$package" ] && continue
    mkdir -p "$cache/debs"
    (cd "$cache/debs" && { ls "${package}"_*.deb >/dev/null 2>&1 || apt-get download "$package"; })
    dpkg-deb -x "$cache"/debs/"${package}"_*.deb "$cache/$package.part"
    mv "$cache/$package.part" "$cache/$package"
done
