"""Damaged, foreign and hostile DLLs and programs: refused by their names, in bounded time."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.pe.header import Image, PeBytes, PeError, PeSection, read_header
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
            b"\x7fELF", "a.dll: not a Windows DLL or program (the file begins with b'\\x7fE'); expected a PE file, "
            "which begins with b'MZ'", id="ELF",
        ),
        pytest.param(
            b"MZ" + bytes(58) + b"\x40\0\0\0" + b"NE\0\0" + bytes(200),
            "a.dll: a DOS program or a damaged file, with b'NE\\x00\\x00' at 0x40; expected the signature "
            "b'PE\\x00\\x00' there", id="16 bits",
        ),
        pytest.param(
            (LAUNCHERS / "t32.exe").read_bytes(), "a.dll: a 32-bit PE file for x86 (32 bits); expected a 64-bit "
            "PE file. Leave the file out: ROCm programs don't load such files.", id="32 bits",
        ),
        pytest.param(
            changed(0x3C, "<I", 1 << 31), "a.dll: the PE signature would span 0x80000000 to 0x80000004, but the file "
            f"ends at {len(PROGRAM):#x}; expected a whole PE file. The file is truncated or damaged. Copy the file "
                "again, or rebuild it.",
            id="header outside",
        ),
        pytest.param(
            changed(AT + 24, "<H", 0x107),
            "a.dll: an optional header with the unknown magic number 0x107; expected a 64-bit PE file",
            id="image of a ROM",
        ),
        pytest.param(
            changed(AT + 20, "<H", 100), "a.dll: an optional header of 100 bytes; expected at least 112 bytes",
            id="short optional header",
        ),
        pytest.param(
            changed(IMPORTS, "<II", 0x7FFFF000, 40), "a.dll: an import descriptor would be at the address 0x7ffff000, "
            "where no section has bytes in the file; expected a whole PE file. The file is truncated or damaged. "
                "Copy the file "
            "again, or rebuild it.", id="imports outside",
        ),
        pytest.param(
            changed(CERTIFICATES, "<II", len(PROGRAM) - 8, 16), f"a.dll: the certificates would span "
            f"{len(PROGRAM) - 8:#x} to {len(PROGRAM) + 8:#x}, but the file ends at {len(PROGRAM):#x}; expected a whole "
            "PE file. The file is truncated or damaged. Copy the file again, or rebuild it.", id="certificates outside",
        ),
    ],
)  # fmt: skip
def test_a_file_that_is_not_a_64_bit_pe_file_is_refused_with_its_actual_type(data: bytes, message: str) -> None:
    with pytest.raises(PeError, match=f"^{re.escape(message)}$"):
        read_pe(data, name="a.dll")


def test_a_section_outside_the_file_is_reported() -> None:
    data = changed(SECTIONS + 16, "<I", 1 << 30)
    with pytest.raises(PeError, match=r"^a\.dll: the section \.text would span 0x400 to 0x40000400, but"):
        read_pe(data, name="a.dll")


def test_an_imported_dll_without_a_name_is_refused() -> None:
    dep = Path(__file__).parents[2] / "fixtures/pe/program.exe"
    data = dep.read_bytes().replace(b"dep6.dll\0", b"\0ep6.dll\0")
    with pytest.raises(PeError, match=r"^a\.exe: the name of an imported DLL is empty; expected a file name$"):
        read_pe(data, name="a.exe")


def test_certificates_are_located_by_their_offset_in_the_file() -> None:
    signed = read_pe(changed(CERTIFICATES, "<II", len(PROGRAM) - 16, 16), name="a.dll")
    assert signed.certificate is not None
    assert (signed.certificate.offset, signed.certificate.size) == (len(PROGRAM) - 16, 16)


def test_a_truncated_file_is_refused() -> None:
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
def test_tables_with_arbitrary_addresses_are_read_or_refused(at: int, address: int, size: int) -> None:
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


def test_tables_that_list_the_same_functions_endlessly_are_refused() -> None:
    message = "a.dll: imports more than 1048576 functions: its tables are damaged"
    with pytest.raises(PeError, match=f"^{re.escape(message)}$"):
        read_pe(looped(), name="a.dll")


def crowded(sections: int, names: int) -> bytes:
    """Return a DLL of many sections that share one range of bytes, the last one with an export table of many names."""
    offset, address = -(-(SECTIONS + 40 * sections) // 512) * 512, 0x1000_0000
    at = address + 40
    text = at + 4 + 6 * names
    table = struct.pack("<IIHHIIIIIII", 0, 0, 0, 0, text, 1, 1, names, at, at + 4, at + 4 + 4 * names)
    body = table + bytes(4) + struct.pack("<I", text) * names + bytes(2 * names) + b"a.dll\0"
    header = bytearray(PROGRAM[:SECTIONS])
    struct.pack_into("<H", header, AT + 6, sections)
    header[IMPORTS - 8 : IMPORTS + 15 * 8] = struct.pack("<II", address, len(body)).ljust(128, b"\0")
    row = struct.pack("<8sIIIIIIHHI", b".a", 0, 0x1000, 512, offset, 0, 0, 0, 0, 0x4000_0040)
    last = struct.pack("<8sIIIIIIHHI", b".e", len(body), address, len(body), offset, 0, 0, 0, 0, 0x4000_0040)
    return (bytes(header) + row * (sections - 1) + last).ljust(offset, b"\0") + body


def test_a_dll_with_the_most_sections_is_read_in_bounded_time() -> None:
    """A look at each section for each of the names would be 4 * 10^9 steps: minutes, and what is allowed is 60 s."""
    data = crowded(65_000, 60_000)
    script = """if True:
        import resource, sys
        from rocwheel.binary.pe.facts import read_pe
        from rocwheel.binary.pe.layout import find_layout_faults
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        data = sys.stdin.buffer.read()
        pe = read_pe(data, name="a.dll")
        faults = find_layout_faults(data, pe, name="a.dll", whole=False)
        print(len(pe.exports.names), *[fault.found for fault in faults])
    """
    done = subprocess.run([sys.executable, "-c", script], input=data, capture_output=True, check=False)
    expected = b"60000 has 65000 sections, but Windows loads files with at most 96\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, b"")


def section_of(address: int, size: int, offset: int) -> PeSection:
    return PeSection(f".{offset}", address, size, offset, size, 0)


NUMBERS = st.integers(0, 30)


@given(st.lists(st.builds(section_of, NUMBERS, NUMBERS, NUMBERS.map(lambda at: 512 * at)), max_size=8))
def test_the_first_of_several_overlapping_sections_wins(sections: list[PeSection]) -> None:
    header = read_header(PeBytes(memoryview(PROGRAM), "a.dll"))
    image = Image(PeBytes(memoryview(b""), "a.dll"), header, tuple(sections))
    for address in range(64):
        holders = [one for one in sections if one.address <= address < one.address + one.file_size]
        if holders:
            first = holders[0]
            place = (first.offset + address - first.address, first.end)
            assert image.offset_of(address, "a table") == place
        else:
            with pytest.raises(PeError, match="where no section has bytes in the file"):
                image.offset_of(address, "a table")
