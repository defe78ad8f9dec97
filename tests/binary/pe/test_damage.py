"""Damaged, foreign and hostile DLLs and programs: refused by their names, in bounded time."""

from __future__ import annotations

import re
import struct
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.pe.facts import PeError, read_pe
from tests.support.damage import damaged, unless_refused

LAUNCHERS = Path(sysconfig.get_path("purelib"), "installer", "_scripts")
PROGRAM = (LAUNCHERS / "t64.exe").read_bytes()
AT = struct.unpack_from("<I", PROGRAM, 0x3C)[0]
"""Where the PE signature stands; the COFF header has 20 bytes, directories begin 112 bytes into the optional header."""
SECTIONS = AT + 24 + struct.unpack_from("<H", PROGRAM, AT + 20)[0]
IMPORTS = AT + 24 + 112 + 8
CERTIFICATES = AT + 24 + 112 + 4 * 8


def changed(at: int, layout: str, *values: int) -> bytes:
    data = bytearray(PROGRAM)
    struct.pack_into(layout, data, at, *values)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "a.dll: empty; expected a PE file, which begins with b'MZ'", id="empty"),
        pytest.param(
            b"\x7fELF", "a.dll: not a DLL or program of Windows (it begins with b'\\x7fE'); expected a PE file, "
            "which begins with b'MZ'", id="ELF",
        ),
        pytest.param(
            b"MZ" + bytes(58) + b"\x40\0\0\0" + b"NE\0\0" + bytes(200),
            "a.dll: a program of DOS, or damaged: b'NE\\x00\\x00' stands at 0x40; expected the signature "
            "b'PE\\x00\\x00' there", id="16 bits",
        ),
        pytest.param(
            (LAUNCHERS / "t32.exe").read_bytes(), "a.dll: a 32-bit PE file for x86 (32 bits); expected a 64-bit "
            "PE file. Leave it out: no ROCm program loads it.", id="32 bits",
        ),
        pytest.param(
            changed(0x3C, "<I", 1 << 31), "a.dll: the PE signature would lie at 0x80000000 to 0x80000004, but the file "
            f"ends at {len(PROGRAM):#x}; expected a whole PE file. It is truncated or damaged: copy or build it again.",
            id="header outside",
        ),
        pytest.param(
            changed(AT + 24, "<H", 0x107),
            "a.dll: an optional header of the unknown kind 0x107; expected a 64-bit PE file",
            id="image of a ROM",
        ),
        pytest.param(
            changed(AT + 20, "<H", 100), "a.dll: an optional header of 100 bytes; expected 112 bytes or more",
            id="short optional header",
        ),
        pytest.param(
            changed(IMPORTS, "<II", 0x7FFFF000, 40), "a.dll: an import descriptor would lie at the address 0x7ffff000, "
            "where no section has bytes of the file; expected a whole PE file. It is truncated or damaged: copy or "
            "build it again.", id="imports outside",
        ),
        pytest.param(
            changed(CERTIFICATES, "<II", len(PROGRAM) - 8, 16), f"a.dll: the certificates would lie at "
            f"{len(PROGRAM) - 8:#x} to {len(PROGRAM) + 8:#x}, but the file ends at {len(PROGRAM):#x}; expected a whole "
            "PE file. It is truncated or damaged: copy or build it again.", id="certificates outside",
        ),
    ],
)  # fmt: skip
def test_what_is_no_64_bit_pe_file_is_named_with_what_it_is(data: bytes, message: str) -> None:
    with pytest.raises(PeError, match=f"^{re.escape(message)}$"):
        read_pe(data, name="a.dll")


def test_a_section_outside_of_the_file_is_named() -> None:
    data = changed(SECTIONS + 16, "<I", 1 << 30)
    with pytest.raises(PeError, match=r"^a\.dll: the section \.text would lie at 0x400 to 0x40000400, but"):
        read_pe(data, name="a.dll")


def test_a_dll_without_a_name_is_refused() -> None:
    dep = Path(__file__).parents[2] / "fixtures/pe/program.exe"
    data = dep.read_bytes().replace(b"dep6.dll\0", b"\0ep6.dll\0")
    with pytest.raises(PeError, match=r"^a\.exe: the name of an imported DLL is empty; expected a file name$"):
        read_pe(data, name="a.exe")


def test_certificates_are_told_by_their_place_in_the_file() -> None:
    signed = read_pe(changed(CERTIFICATES, "<II", len(PROGRAM) - 16, 16), name="a.dll")
    assert signed.certificate is not None
    assert (signed.certificate.offset, signed.certificate.size) == (len(PROGRAM) - 16, 16)


def test_a_file_cut_off_anywhere_is_read_or_refused() -> None:
    """Bytes behind the last section belong to nobody, so that a file may end there."""
    for size in [*range(0, 1024, 7), *range(1024, len(PROGRAM) - 4096, 1009)]:
        with pytest.raises(PeError, match=r"^a\.dll: "):
            read_pe(PROGRAM[:size], name="a.dll")


def read_names(data: bytes) -> int:
    return len(read_pe(data, name="a.dll").wanted)


@given(damaged([PROGRAM]))
def test_a_damaged_file_is_read_or_refused(data: bytes) -> None:
    unless_refused(lambda: read_names(data), "a.dll")


TABLES = [IMPORTS, IMPORTS - 8, IMPORTS + 8, IMPORTS + 12 * 8, SECTIONS, SECTIONS + 40]


@given(st.sampled_from(TABLES), st.integers(0, len(PROGRAM) + 4096), st.integers(0, 1 << 32 - 1))
def test_tables_that_lead_anywhere_are_read_or_refused(at: int, address: int, size: int) -> None:
    unless_refused(lambda: read_names(changed(at, "<II", address, size)), "a.dll")


def looped() -> bytes:
    """Return a program whose import descriptors fill a section, each with the longest list of functions there is."""
    image = bytearray(changed(IMPORTS, "<II", 0x1000, 40))
    start = struct.unpack_from("<I", PROGRAM, SECTIONS + 20)[0]
    struct.pack_into("<I", image, SECTIONS + 12, 0x1000)
    size = struct.unpack_from("<I", PROGRAM, SECTIONS + 16)[0]
    names = size // 2 // 8 * 8
    for at in range(0, names - 20, 20):
        struct.pack_into("<IIIII", image, start + at, 0x1000 + names, 0, 0, 0x1000 + size - 8, 0x1000 + names)
    for at in range(names, size - 16, 8):
        struct.pack_into("<Q", image, start + at, 1 << 63 | 5)
    image[start + size - 16 : start + size] = bytes(8) + b"a.dll\0\0\0"
    return bytes(image)


def test_tables_that_name_the_same_functions_again_and_again_end() -> None:
    message = "a.dll: imports more than 1048576 functions: its tables are damaged"
    with pytest.raises(PeError, match=f"^{re.escape(message)}$"):
        read_pe(looped(), name="a.dll")
