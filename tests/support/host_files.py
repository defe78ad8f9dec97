"""Files with device code to split, as linkers make them, and what stands in for the runtime that they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.kpack.markers import Marker
from rocwheel.core.reading import join_data
from rocwheel.device.split.host_file import UnitLink, plan_host_file
from rocwheel.device.split.joined_file import plan_fat_file
from tests.support.hip_runtime import build_runtime, registered, runtime_source
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.support.tools import RunTool

__all__ = [
    "LINKERS",
    "MARKERS",
    "RUNTIME",
    "STRIPPERS",
    "bundles_of",
    "join",
    "link_library",
    "link_program",
    "link_two_units",
    "loaded_units",
    "parse_units",
    "runtime_library",
    "split",
    "units_of",
]

LINKERS = {
    "lld": ["ld.lld-16"],
    "gnu-ld": ["ld.bfd", "-z", "separate-code"],
    "gnu-ld-noseparate-code": ["ld.bfd", "-z", "noseparate-code"],
    "gnu-ld-64k-pages": ["ld.bfd", "-z", "max-page-size=65536", *[str(FIXTURES / "v19/vadd.plain.o")] * 10],
    "gold": ["ld.gold"],
}
"""How each linker is called for a shared library."""
STRIPPERS = {
    "strip": ["strip"],
    "strip-debug": ["strip", "--strip-debug"],
    "objcopy": ["objcopy", "--remove-section", ".comment"],
    "eu-strip": ["eu-strip"],
    "llvm-strip-15": ["llvm-strip-15"],
    "llvm-strip-22": ["llvm-strip-22"],
    "llvm-strip-22-debug": ["llvm-strip-22", "--strip-debug"],
    "llvm-objcopy": ["llvm-objcopy-22", "--remove-section", ".comment"],
}
"""Programs that write a file again without some of its parts."""
MARKERS = (
    Marker("lib/libtwo.so", ("../.kpack/two_@GFXARCH@.kpack",)),
    Marker("lib/libtwo.so", ("../.kpack/two-some_@GFXARCH@.kpack",)),
)

RUNTIME = runtime_source('printf("%x %u ", w->magic, w->index);', "32")
"""C of a stand-in for libamdhip64 that prints each wrapper, and the first 32 bytes that it points to."""
_UNITS = """
 .section .hip_fatbin,"a",@progbits
{bundles}{behind}
 .section .hipFatBinSegment,"aw",@progbits
 .p2align 3
 .globl wrappers
wrappers:
{wrappers}
 .section .note.GNU-stack,"",@progbits
"""
_PROGRAM = r"""
#include <elf.h>
#include <stdio.h>
#include <sys/auxv.h>
struct wrapper { unsigned magic, version; const unsigned char *binary; unsigned index, zero; };
extern struct wrapper wrappers[2];
extern const Elf64_Ehdr __ehdr_start;
__thread int local = 7;
int data[2000] = {1};
int zeros[5000];
int main(void) {
    int is_true = getauxval(AT_PHDR) == (unsigned long)&__ehdr_start + __ehdr_start.e_phoff;
    int sum = local + data[0];
    for (int i = 0; i < 5000; i++) sum += zeros[i];
    printf("%d %d %d\n", is_true, getauxval(AT_PHNUM) == __ehdr_start.e_phnum, sum);
    for (struct wrapper *w = wrappers; w < wrappers + 2; w++) {
        printf("%x %u ", w->magic, w->index);
        for (unsigned i = 0; i < 32; i++) printf("%02x", w->binary[i]);
        printf("\n");
    }
    return 0;
}
"""


def units_of(data: memoryview) -> tuple[int, ...]:
    """Return which bundle each wrapper of a fat binary points to, in the wrappers' order."""
    fat = read_fat_binary(data, name="x")
    assert fat is not None
    starts = [bundle.start for bundle in fat.iter_bundles(data)]
    return tuple(starts.index(wrapper.pointer.target - fat.section.address) for wrapper in fat.wrappers)


def bundles_of(data: memoryview) -> list[bytes]:
    """Return the bundles of a fat binary."""
    fat = read_fat_binary(data, name="x")
    assert fat is not None
    view = fat.view(data)
    return [bytes(view[bundle.start : bundle.stop]) for bundle in fat.iter_bundles(data)]


def split(data: bytes | memoryview) -> bytes:
    """Return a host file whose bundle 0 is named by the first of `MARKERS`, and all others by the second."""
    view = memoryview(data)
    links = [UnitLink(unit, min(unit, 1)) for unit in units_of(view)]
    return join_data(plan_host_file(view, MARKERS, links, name="x").apply(view))


def join(host: bytes, bundles: Sequence[bytes], units: Sequence[int]) -> bytes:
    """Return the fat file of a host file and bundles."""
    view = memoryview(host)
    patch = plan_fat_file(view, [memoryview(bundle) for bundle in bundles], units, name="x")
    return join_data(patch.apply(view))


def runtime_library(run_tool: RunTool, folder: Path) -> Path:
    """Build a stand-in for libamdhip64 that prints each wrapper, and the first 32 bytes that it points to."""
    return build_runtime(run_tool, folder, RUNTIME)


def loaded_units(runtime: Path, library: Path) -> list[tuple[str, int, bytes]]:
    """Load a library in a process of its own; return magic, index and the first bytes of each unit it registers."""
    return parse_units(registered(runtime, library))


def parse_units(text: str) -> list[tuple[str, int, bytes]]:
    """Return what the stand-in, and the program below, print of units."""
    return [
        (magic, int(index), bytes.fromhex(head)) for magic, index, head in (line.split() for line in text.splitlines())
    ]


def link_two_units(run_tool: RunTool, folder: Path, linker: str) -> Path:
    """Link a library of several translation units by one of `LINKERS`."""
    library = folder / "libtwo.so"
    unit = str(FIXTURES / "v19/vadd.plain.o")
    options = ["-shared", "-z", "muldefs", "--build-id", "-o", str(library)]
    run_tool([*LINKERS[linker], *options, unit, unit])
    return library


def link_program(run_tool: RunTool, folder: Path, options: Sequence[str]) -> Path:
    """Link a program with two bundles that prints whether the kernel told it the truth, and its wrappers."""
    (folder / "units.s").write_text(_units("v22/saxpy.hipfb", "", ""))
    (folder / "main.c").write_text(_PROGRAM)
    program = folder / "program"
    run_tool(["gcc", "-g", *options, "-o", str(program), str(folder / "main.c"), str(folder / "units.s")])
    return program


def link_library(
    run_tool: RunTool, folder: Path, options: Sequence[str] = (), *, behind: str = "", more: str = "", bundle: str = ""
) -> Path:
    """Link a library by lld; ``behind`` is assembly after its bundles, ``more`` that of other sections.

    Without ``bundle``, it has two of a usual one, else one of that, for two wrappers.
    """
    (folder / "units.s").write_text(_units(bundle or "v22/saxpy.hipfb", behind, more, count=1 if bundle else 2))
    library = folder / "libunits.so"
    arguments = ["-shared", "-nostdlib", "-fuse-ld=lld", *options, "-o", str(library)]
    run_tool(["clang-16", *arguments, str(folder / "units.s")], is_silent=True)
    return library


def _units(bundle: str, behind: str, more: str, count: int = 2) -> str:
    unit = FIXTURES / bundle
    bundles = "".join(f' .p2align 12\nbundle_{n}: .incbin "{unit}"\n' for n in range(count))
    wrappers = "".join(f" .long 0x48495046, 1\n .quad bundle_{n % count}, 0\n" for n in range(2))
    return _UNITS.format(bundles=bundles, wrappers=wrappers, behind=behind) + more
