#!/usr/bin/env bash
# Whether packages together have all that a GPU needs: code in every library, in archives beside it, and kernel files
# (Tensile's and others') in the folders that libraries open. Exit status 0 if so, 1 if something is missing; each is named.
# Usage: check-stack.sh GPU PACKAGE.deb...   Needs rocwheel on PATH and dpkg-deb; no root.
set -euo pipefail
gpu=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for deb in "$@"; do dpkg-deb --extract "$deb" "$work"; done
cd "$work"
rocwheel targets runs-on --quiet "$gpu" usr
