"""Tests of `rocwheel.artifacts.host_parts`."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.host_parts import HostDifference, compare_host_parts
from tests.support.libraries import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow

PROGRAM = r"""
#include <stdexcept>
#include <string>
extern const char marker[] __attribute__((visibility("hidden")));
struct wrapper { unsigned magic, version; const char *bundle; long unused; };
__attribute__((section(".hipFatBinSegment"), used)) static wrapper wrappers[] = { { 0x4B504948, 1, marker, 0 } };
asm(".section .hip_fatbin,\"a\",@nobits\n.balign 4096\n.skip SIZE\n.section .rocm_kpack_ref,\"a\"\n"
    ".hidden marker\n.globl marker\nmarker: .byte 0x82, 0xab\n.ascii \"kernel_name\"\n.byte 0xa1\n.ascii \"x\"\n"
    ".byte 0xb2\n.ascii \"kpack_search_paths\"\n.byte 0x91, 0xa1\n.ascii \"a\"\n.text");
struct base { virtual int get(int) = 0; virtual ~base() {} };
template <int N> struct derived : base {
    int get(int i) override { if (i == N) throw std::runtime_error("no"); return i; }
};
base *make(int i) {
    switch (i) {
    case 0: return new derived<0>; case 1: return new derived<11>; case 2: return new derived<2>;
    case 3: return new derived<3>; case 4: return new derived<41>; case 5: return new derived<5>;
    case 6: throw std::logic_error("six"); case 7: return new derived<7>; case 8: return new derived<88>;
    }
    return nullptr;
}
int steps(int i, int *values) {
    switch (i) {
    case 0: values[3] += 4; /* fall through */ case 1: values[1] *= 7; break; case 2: values[i] ^= values[9]; break;
    case 3: values[2] -= 1; break; case 4: return make(i)->get(3); case 5: values[8] /= 3; break;
    case 6: try { make(6); } catch (const std::logic_error &e) { return e.what()[0]; } break;
    case 7: values[0] = 0; /* fall through */ case 8: values[5] += i * VALUE;
    }
    return values[4];
}
static std::string table[] = { "one", "two" };
static const char *names[] = { "a", "b", "c" };
thread_local int counter = 6;
int find(const char *name) { counter++; return (table[counter & 1] == name) + names[counter % 3][0]; }
int main(int n, char **) { int values[10] = {}; return steps(n, values) + find("one"); }
"""

LINKERS = [
    "g++",
    pytest.param(
        "g++ -fuse-ld=lld", marks=pytest.mark.skipif(not shutil.which("ld.lld"), reason="needs the linker of LLVM")
    ),
]
KINDS = ["-shared -fPIC", "-pie -fPIE", "-no-pie -fno-pie"]


def linked(folder: Path, words: str, size: int, value: int = 5) -> memoryview:
    path = folder / "library"
    command = [*words.split(), "-O2", "-x", "c++", "-", "-o", str(path)]
    source = PROGRAM.replace("SIZE", str(size)).replace("VALUE", str(value))
    subprocess.run(command, input=source.encode(), check=True)
    return memoryview(path.read_bytes())


@pytest.mark.deep
@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("linker", LINKERS)
def test_only_addresses_differ_if_sections_moved(tmp_path: Path, linker: str, kind: str) -> None:
    one, other = (linked(tmp_path, f"{linker} {kind}", size) for size in (8192, 8192 * 500))
    assert compare_host_parts(one, other, name="library") is HostDifference.LAYOUT
    assert compare_host_parts(other, one, name="library") is HostDifference.LAYOUT


@pytest.mark.deep
@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("linker", LINKERS)
def test_a_different_constant_in_the_program_is_a_difference(tmp_path: Path, linker: str, kind: str) -> None:
    one, other = (linked(tmp_path, f"{linker} {kind}", 8192 * n, value) for n, value in ((1, 0x10005), (3, 0x14005)))
    assert compare_host_parts(one, other, name="library") is HostDifference.HOST
