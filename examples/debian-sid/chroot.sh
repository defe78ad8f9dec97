#!/bin/bash
# Makes a folder with Debian sid in it: its Python with pip, a C++ compiler, CMake, and nothing of ROCm or LLVM.
# A folder that is there is kept. Needs root; mmdebstrap is installed where it is missing.
#
#   chroot.sh CHROOT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec bash "$here/../../scripts/make-chroot.sh" sid "$1" python3 python3-venv g++ cmake make perl file passwd util-linux
