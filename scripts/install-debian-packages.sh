#!/usr/bin/env bash
# Installs the Debian packages that tests compare with (scripts/debian-packages.txt). Needs root and apt; without
# them it says which packages are missing, and the tests that need these are skipped.
set -euo pipefail
cd "$(dirname "$0")"

mapfile -t wanted < <(grep -v '^#' debian-packages.txt)
missing=()
for package in "${wanted[@]}"; do
    dpkg-query --show --showformat '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "not installed, so the tests that need them are skipped: ${missing[*]}" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
sh apt-get.sh update -qq
available=()
for package in "${missing[@]}"; do
    if apt-cache show "$package" >/dev/null 2>&1; then available+=("$package"); else
        echo "not in this release of Debian, so the tests that need it are skipped: $package" >&2
    fi
done
[ ${#available[@]} -eq 0 ] || sh apt-get.sh install -qq -y --no-install-recommends "${available[@]}" >/dev/null
