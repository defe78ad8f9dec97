"""How ELF files were linked: writable code, executable stacks, text relocations, build ids."""

from __future__ import annotations

import pytest

from tests.support.breaches import Breach, check_breach, one
from tests.support.trees import MISALIGNED, find, library, package

BREACHES = {
    "segment-alignment": Breach(
        one(library("demo/a.so", segments=MISALIGNED), owner=package(tag="py3-none-linux_x86_64")),
        "demo/a.so",
        "has a segment at 0x701000 in the file and 0xa00000 in memory that asks for an alignment of 0x200000: glibc "
        "before 2.35 refuses it",
        {"select": ("segment-alignment",)},
    ),
    "executable-stack": Breach(
        one(library("demo/a.so", executable_stack=True)),
        "demo/a.so",
        "asks for an executable stack: newer systems refuse to dlopen it",
    ),
    "text-relocations": Breach(
        one(library("demo/a.so", text_relocations=True)),
        "demo/a.so",
        "has text relocations: its code is changed when it is loaded",
    ),
    "writable-code": Breach(
        one(library("demo/a.so", writable_code=True)),
        "demo/a.so",
        "has a segment that is both writable and executable",
    ),
    "missing-build-id": Breach(
        one(library("demo/a.so", build_id=None)),
        "demo/a.so",
        "has no build id: its debug information can't be found by it",
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_is_found_and_nothing_else(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


def test_the_tag_of_a_wheel_says_whether_its_segments_are_loaded() -> None:
    def rules(tag: str) -> list[str]:
        owner = package(tag=f"py3-none-{tag}")
        return [finding.rule for finding in find(one(library("demo/a.so", segments=MISALIGNED), owner=owner))]

    assert rules("manylinux_2_28_x86_64") == ["tag-too-old"]
    assert rules("manylinux_2_35_x86_64") == []
    assert rules("linux_x86_64") == ["segment-alignment", "tag-local"]
    assert rules("musllinux_1_2_x86_64") == ["musl-unchecked"]
