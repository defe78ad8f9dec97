"""What second readings of formats leave open, and what harnesses expect of a change."""

from __future__ import annotations

import msgspec
import pytest

from rocwheel.binary.bundles.device_code import iter_ar_members
from trials.fuzz.beside.ar_members import compare_members
from trials.fuzz.harness import find_harness


def _part(name: str, data: bytes) -> bytes:
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
    return header + data + b"\n" * (len(data) % 2)


def test_a_name_table_with_both_nul_and_newline_terminators_is_not_compared_with_arpy() -> None:
    data = b"!<arch>\n" + _part("//", b"a\nb.obj\0c.obj\0") + _part("/0", b"1") + _part("/8", b"2")
    members = compare_members(iter_ar_members(memoryview(data), name="x.a"), data)
    assert [member.name for member in members] == ["a", "c.obj"]


@pytest.mark.parametrize(
    "target",
    ["amdgpu9.06-amd-amdhsa-unknown-gfx906", "amdgpu9.06-amdhsa--gfx906", "amdgcn-amd-amdhsa--gfx906"],
)
def test_a_note_from_llvm_24_may_have_the_new_processor_in_its_architecture(target: str) -> None:
    note = msgspec.msgpack.encode({"amdhsa.version": [1, 2], "amdhsa.target": target})
    find_harness("retargeting.target_note").run(note)
