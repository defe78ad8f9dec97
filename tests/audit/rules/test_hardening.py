"""How ELF files were linked: writable code, executable stacks, text relocations, build ids."""

from __future__ import annotations

import platform
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.support.breaches import Breach, check_breach, one
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.trees import CODE, MISALIGNED, find, library, package

if TYPE_CHECKING:
    from pathlib import Path

BREACHES = {
    "segment-alignment": Breach(
        one(library("demo/a.so", segments=MISALIGNED), owner=package(tag="py3-none-linux_x86_64")),
        "demo/a.so",
        "has a segment at 0x701000 in the file and 0xa00000 in memory that requests an alignment of 0x200000: "
        "glibc versions before 2.35 reject the file",
        {"select": ("segment-alignment",)},
    ),
    "executable-stack": Breach(
        one(library("demo/a.so", executable_stack=True)),
        "demo/a.so",
        "requests an executable stack: newer systems refuse to dlopen the file",
    ),
    "text-relocations": Breach(
        one(library("demo/a.so", text_relocations=True)),
        "demo/a.so",
        "has text relocations: the loader changes its code",
    ),
    "writable-code": Breach(
        one(library("demo/a.so", writable_code=True)),
        "demo/a.so",
        "has a segment that is both writable and executable",
    ),
    "missing-build-id": Breach(
        one(library("demo/a.so", build_id=None)),
        "demo/a.so",
        "has no build ID, so debuggers can't find its debug information",
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_of_a_rule_is_the_only_finding(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


def test_the_wheel_tag_tells_whether_misaligned_segments_can_be_loaded() -> None:
    def rules(tag: str) -> list[str]:
        owner = package(tag=f"py3-none-{tag}")
        return [finding.rule for finding in find(one(library("demo/a.so", segments=MISALIGNED), owner=owner))]

    assert rules("manylinux_2_28_x86_64") == ["tag-too-old"]
    assert rules("manylinux_2_35_x86_64") == []
    assert rules("linux_x86_64") == ["segment-alignment", "tag-local"]
    assert rules("musllinux_1_2_x86_64") == ["musl-unchecked"]


def aligned(alignment: int, *, machine: int = 62, tag: str = "linux_x86_64") -> list[tuple[str, str]]:
    """Return what is found of a library whose segments ask for an alignment."""
    segments = (msgspec.structs.replace(CODE, alignment=alignment),)
    audited = one(library("demo/a.so", segments=segments, machine=machine), owner=package(tag=f"py3-none-{tag}"))
    return [(f.severity.value, f.found) for f in find(audited, select=("segment-alignment",))]


@pytest.mark.parametrize(("machine", "name"), [(183, "aarch64"), (21, "ppc64le")])
def test_a_library_must_be_aligned_for_the_largest_page_size_of_its_machine(machine: int, name: str) -> None:
    found = (
        "is aligned for 4096-byte pages: kernels with 64 KiB pages reject the file (ELF load command alignment not "
        "page-aligned)"
    )
    assert aligned(0x1000, machine=machine, tag=f"manylinux_2_28_{name}") == [("warning", found)]
    assert aligned(0x10000, machine=machine, tag=f"manylinux_2_28_{name}") == []
    assert aligned(0x1000, machine=machine, tag=f"musllinux_1_2_{name}") == []
    assert aligned(0x1000) == []


@pytest.mark.parametrize(
    ("machine", "alignment", "is_found"),
    [(62, 1 << 45, False), (62, 1 << 46, True), (62, 3 << 46, False), (183, 1 << 46, False), (183, 1 << 47, True)],
)
def test_an_alignment_larger_than_the_address_space_is_an_error(machine: int, alignment: int, is_found: bool) -> None:
    found = f"requests an alignment of 2**{alignment.bit_length() - 1} bytes: glibc 2.35 and later can't map the file, "
    found += "because no process has enough address space"
    assert aligned(alignment, machine=machine, tag="manylinux_2_35_x86_64") == ([("error", found)] if is_found else [])


@needs_compiler
@pytest.mark.skipif(platform.machine() != "x86_64", reason="other machines have more addresses")
def test_the_loader_refuses_an_alignment_larger_than_the_address_space(tmp_path: Path) -> None:
    data = (build_tree(tmp_path, Lib("libx.so")) / "libx.so").read_bytes()
    header = data.index(struct.pack("<I", 1), 64)  # the first PT_LOAD
    loads = []
    for exponent in (45, 46):
        path = tmp_path / f"lib{exponent}.so"
        path.write_bytes(data[: header + 48] + struct.pack("<Q", 1 << exponent) + data[header + 56 :])
        program = f"import ctypes; ctypes.CDLL({str(path)!r})"
        loads.append(subprocess.run([sys.executable, "-c", program], check=False, capture_output=True).returncode == 0)
    assert loads == [True, False]
