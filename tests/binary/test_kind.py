"""Tests of telling binaries apart by their first bytes."""

from __future__ import annotations

import pytest

from rocwheel.binary.kind import (
    has_facts,
    is_ar_archive,
    is_binary,
    is_bundle,
    is_cut_elf,
    is_elf,
    is_elf64,
    is_pe,
    is_thin_archive,
)

ELF64 = b"\x7fELF\2\1\1"
ELF32 = b"\x7fELF\1\1\1"
BIG_ENDIAN = b"\x7fELF\2\2\1"
PLAIN = b"__CLANG_OFFLOAD_BUNDLE__\1"
COMPRESSED = b"CCOB\2\0"
ARCHIVE = b"!<arch>\nlibx.o"
THIN = b"!<thin>\nlibx.o"
DLL = b"MZ\x90\0"
TEXT = b"#!/bin/sh"


def true_of(head: bytes) -> set[str]:
    """Return the names of what is so of a file that begins like this."""
    tests = (is_elf, is_elf64, is_bundle, is_ar_archive, is_thin_archive, is_pe, has_facts, is_binary)
    assert all(test(head) == test(memoryview(head)) for test in tests)
    return {test.__name__ for test in tests if test(head)}


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param(ELF64, {"is_elf", "is_elf64", "has_facts", "is_binary"}, id="64-bit"),
        pytest.param(ELF32, {"is_elf", "is_binary"}, id="32-bit"),
        pytest.param(BIG_ENDIAN, {"is_elf", "is_binary"}, id="big-endian"),
        pytest.param(PLAIN, {"is_bundle", "has_facts", "is_binary"}, id="plain"),
        pytest.param(COMPRESSED, {"is_bundle", "has_facts", "is_binary"}, id="compressed"),
        pytest.param(ARCHIVE, {"is_ar_archive", "is_binary"}, id="archive"),
        pytest.param(THIN, {"is_thin_archive"}, id="thin archive"),
        pytest.param(DLL, {"is_pe", "has_facts", "is_binary"}, id="DLL"),
        pytest.param(TEXT, set(), id="text"),
        pytest.param(b"", set(), id="empty"),
        pytest.param(ELF64[:3], set(), id="cut off"),
    ],
)
def test_the_kind_of_a_file_is_determined_by_its_first_bytes(head: bytes, expected: set[str]) -> None:
    assert true_of(head) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x7fELF", True),
        (ELF32, True),
        (ELF32.ljust(51, b"\0"), True),
        (ELF32.ljust(52, b"\0"), False),
        (b"\x7fEL", False),
        (TEXT, False),
    ],
)
def test_an_elf_file_that_ends_inside_its_header_is_truncated(data: bytes, expected: bool) -> None:
    assert (is_cut_elf(data), is_cut_elf(memoryview(data))) == (expected, expected)
