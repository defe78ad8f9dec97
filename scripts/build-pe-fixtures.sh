#!/bin/sh
# Builds the small DLLs and the program of Windows in tests/fixtures/pe with Debian's clang-16, lld-16 and llvm-16, without
# any file of Windows or MinGW. The same tools make the same bytes.
#
# api7.dll was linked as api.dll, loads dep6.dll when it first calls it, forwards api_far there and has a version.
# program.exe imports from both, from dep6.dll also by ordinal.
#
# two.dll has the device code of tests/fixtures/edge/two.plain.fatbin, two bundles with a wrapper each. two-gnu.dll is the
# same by Debian's mingw-w64: it has symbols and a checksum.
# two.obj is the object file of the device code.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
source=$root/scripts/pe_fixtures
out=$root/tests/fixtures/pe
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
mkdir -p "$out"
cd "$work"

for name in dep api program; do
    clang-16 --target=x86_64-pc-windows-msvc -ffreestanding -O1 -c "$source/$name.c" -o $name.obj
done
llvm-rc-16 -no-preprocess /fo api.res "$source/api.rc"
link="lld-link-16 /nodefaultlib /brepro"
$link /out:dep6.dll /dll /noentry dep.obj /export:dep_secret,@7,NONAME /implib:dep.lib
$link /out:api.dll /dll /noentry api.obj api.res dep.lib /delayload:dep6.dll /export:api_far=dep6.dep_one /implib:api.lib
$link /out:program.exe /subsystem:console program.obj api.lib dep.lib

cp "$root/tests/fixtures/edge/two.plain.fatbin" .
sed 's/SECOND/0x5000/' "$source/two.s" > two.s
clang-16 --target=x86_64-pc-windows-msvc -ffreestanding -O1 -c "$source/two.c" -o two.obj
clang-16 --target=x86_64-pc-windows-msvc -mno-incremental-linker-compatible -c two.s -o two-code.obj
$link /out:two.dll /dll /noentry two.obj two-code.obj
x86_64-w64-mingw32-gcc -ffreestanding -O1 -c "$source/two.c" -o two-gnu.o
x86_64-w64-mingw32-as two.s -o two-code.o
x86_64-w64-mingw32-ld -shared --disable-auto-import -e 0 --no-insert-timestamp -o two-gnu.dll two-gnu.o two-code.o

cp dep6.dll program.exe two.dll two-gnu.dll "$out"
cp two-code.obj "$out/two.obj"
cp api.dll "$out/api7.dll"
