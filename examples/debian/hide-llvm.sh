#!/bin/bash
# Runs a command in a mount namespace (unshare --mount) in which the machine has no LLVM and no ROCm of its own.
set -euo pipefail

for folder in /usr/lib/llvm-* /opt/rocm* /usr/lib/*-linux-gnu/amdgcn; do
    [ -d "$folder" ] && mount -t tmpfs none "$folder"
done
for library in /usr/lib/*-linux-gnu/lib{LLVM,clang,amdhip64,amd_comgr,hsa,roc,hip}*.so*; do
    [ -f "$library" ] && [ ! -L "$library" ] && mount --bind /dev/null "$library"
done
exec "$@"
