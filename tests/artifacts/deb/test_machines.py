"""The machine code in a package is compared with the architecture that the package declares."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.artifacts.deb.machines import foreign_architecture


def head(machine: int, order: str = "<") -> bytes:
    return b"\x7fELF\2" + (b"\1" if order == "<" else b"\2") + bytes(10) + struct.pack(f"{order}HH", 3, machine)


@pytest.mark.parametrize(
    ("machine", "order", "declared", "foreign"),
    [
        (62, "<", "amd64", ""),
        (183, "<", "amd64", "arm64"),
        (62, "<", "arm64", "amd64"),
        (3, "<", "amd64", ""),
        (3, "<", "arm64", "i386"),
        (22, ">", "s390x", ""),
        (22, ">", "amd64", "s390x"),
        (224, "<", "amd64", ""),
        (183, "<", "all", ""),
        (183, "<", "hurd-amd64", ""),
    ],
)
def test_code_for_another_processor_is_told(machine: int, order: str, declared: str, foreign: str) -> None:
    assert foreign_architecture(head(machine, order), declared) == foreign


@given(st.binary(max_size=30), st.sampled_from(["amd64", "all", ""]))
def test_other_files_are_for_no_machine(data: bytes, declared: str) -> None:
    assert foreign_architecture(data, declared) == ""
    assert foreign_architecture(head(183)[: len(data) % 20], declared) == ""
