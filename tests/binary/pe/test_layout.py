"""Faults of the layout of DLLs and programs: what linkers wrote has none, each change by hand one."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING

import lief
import pefile
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.pe import facts
from rocwheel.binary.pe.facts import checksum_of, iter_debug_entries, read_pe, signed_digest
from rocwheel.binary.pe.header import PeBytes, PeError, open_image
from rocwheel.binary.pe.layout import FaultKind, find_layout_faults
from tests.binary.pe.test_facts import NAMES, path_of
from tests.support.pe_files import with_certificate

if TYPE_CHECKING:
    from rocwheel.binary.pe.header import PeHeader

SECTION_HEADER = 40
CERTIFICATES_ENTRY = 112 + 4 * 8


def faults_of(data: bytes) -> list[tuple[FaultKind, str]]:
    found = find_layout_faults(data, read_pe(data, name="x.dll"), name="x.dll")
    return [(fault.kind, fault.found) for fault in found]


def optional(data: bytes) -> int:
    return read_pe(data, name="x.dll").header.optional_offset


def patched(data: bytes, at: int, layout: str, *values: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(layout, changed, at, *values)
    return bytes(changed)


def section_header(data: bytes, number: int) -> int:
    return read_pe(data, name="x.dll").header.sections_offset + SECTION_HEADER * number


@pytest.fixture
def dep() -> bytes:
    return path_of("dep6.dll").read_bytes()


def digest_of(data: bytes) -> bytes:
    pe = read_pe(data, name="x.dll")
    assert pe.certificate is not None
    return signed_digest(PeBytes(memoryview(data), "x.dll"), pe.header, pe.certificate.offset, "sha256")


@pytest.mark.parametrize("name", NAMES)
def test_linker_output_has_no_faults(name: str) -> None:
    assert faults_of(path_of(name).read_bytes()) == []


def test_a_wrong_checksum_is_reported_and_a_correct_checksum_is_accepted(dep: bytes) -> None:
    at = optional(dep) + 64
    right = checksum_of(memoryview(dep), at)
    assert faults_of(patched(dep, at, "<I", right)) == []
    assert faults_of(patched(dep, at, "<I", 0x1234)) == [
        (
            FaultKind.CHECKSUM,
            f"has the checksum 0x00001234, but its content has {right:#010x}: the file was edited later",
        )
    ]


def test_an_image_size_that_does_not_match_the_sections_is_reported(dep: bytes) -> None:
    size = read_pe(dep, name="x.dll").header.image_size
    assert faults_of(patched(dep, optional(dep) + 56, "<I", size + 0x1000)) == [
        (
            FaultKind.LAYOUT,
            f"declares an image of {size + 0x1000:#x} bytes (SizeOfImage), but its sections end at {size:#x}",
        )
    ]


def test_sections_out_of_order_are_reported(dep: bytes) -> None:
    first, second = section_header(dep, 0), section_header(dep, 1)
    swapped = bytearray(dep)
    swapped[first : first + SECTION_HEADER] = dep[second : second + SECTION_HEADER]
    swapped[second : second + SECTION_HEADER] = dep[first : first + SECTION_HEADER]
    texts = [found for _, found in faults_of(bytes(swapped))]
    assert any(found.endswith("so it leaves a gap before it") for found in texts)
    assert any(found.endswith("so it overlaps the data before it") for found in texts)


def test_a_section_that_is_not_aligned_in_the_file_is_reported(dep: bytes) -> None:
    at = section_header(dep, 0) + 16
    (size,) = struct.unpack_from("<I", dep, at)
    texts = [found for _, found in faults_of(patched(dep, at, "<I", size - 8))]
    assert any("not aligned to 0x200 bytes in the file" in found for found in texts)


def test_sections_that_share_bytes_in_the_file_are_reported(dep: bytes) -> None:
    first, second = section_header(dep, 0), section_header(dep, 1)
    (offset,) = struct.unpack_from("<I", dep, second + 20)
    texts = [found for _, found in faults_of(patched(dep, first + 20, "<I", offset))]
    assert any("in the file, inside the section" in found for found in texts)


def test_a_table_outside_all_sections_is_reported(dep: bytes) -> None:
    entry = optional(dep) + 112 + 6 * 8
    assert faults_of(patched(dep, entry, "<II", 0x7000000, 28)) == [
        (
            FaultKind.LAYOUT,
            (
                "has its table of debug at the addresses 0x7000000 to 0x700001c, a range that isn't inside a "
                "single section"
            ),
        )
    ]


def test_a_section_table_beyond_the_headers_is_reported(dep: bytes) -> None:
    texts = [found for _, found in faults_of(patched(dep, optional(dep) + 60, "<I", 0x40))]
    assert any("but headers of only 0x40 bytes" in found for found in texts)


def test_an_image_of_2_gib_is_reported(dep: bytes) -> None:
    count = read_pe(dep, name="x.dll").header.section_count
    last = section_header(dep, count - 1)
    (address,) = struct.unpack_from("<I", dep, last + 12)
    size = 0x80000000 - address
    large = patched(patched(dep, last + 8, "<I", size), optional(dep) + 56, "<I", 0x80000000)
    assert faults_of(large) == [(FaultKind.SIZE, "takes 2.0 GiB, but Windows loads only files of less than 2 GiB")]


def test_the_signed_digest_agrees_with_lief(dep: bytes) -> None:
    signed = with_certificate(dep, b"\0" * 40)
    pe = lief.PE.parse(list(signed))
    assert pe is not None
    ours = digest_of(signed)
    assert ours == bytes(pe.authentihash_sha256)


def test_a_valid_signature_is_accepted_and_an_outdated_signature_is_reported(dep: bytes) -> None:
    unsigned = with_certificate(dep, b"\0" * 40)
    signed = with_certificate(dep, b"signer" + digest_of(unsigned) + b"xx")
    assert faults_of(signed) == []
    edited = patched(signed, section_header(dep, 0), "<Q", 0x31327478652E)
    assert faults_of(edited) == [
        (FaultKind.SIGNATURE, "has a signature for different content: the file was edited after it was signed")
    ]


def test_certificates_that_are_not_at_the_end_are_reported(dep: bytes) -> None:
    signed = with_certificate(dep, b"\0" * 40) + b"more"
    (fault,) = faults_of(signed)
    assert fault[0] is FaultKind.SIGNATURE
    assert fault[1].endswith("certificates must be last")


def test_a_malformed_certificate_is_reported(dep: bytes) -> None:
    signed = bytearray(with_certificate(dep, b"\0" * 40))
    signed[-48:] = b"\1" * 48
    (fault,) = faults_of(bytes(signed))
    assert fault[1].endswith("but has none there")


def with_certificates(data: bytes, number: int) -> bytes:
    """Return the file with ``number`` certificates of 8 zeros behind it."""
    signed = with_certificate(data, bytes(8))
    grown = patched(signed, optional(signed) + CERTIFICATES_ENTRY + 4, "<I", 16 * number)
    return grown + signed[-16:] * (number - 1)


def test_each_digest_is_computed_once_for_all_certificates(dep: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(source: PeBytes, header: PeHeader, offset: int, algorithm: str) -> bytes:
        made.append(algorithm)
        return signed_digest(source, header, offset, algorithm)

    monkeypatch.setattr(facts, "signed_digest", counted)
    found = (FaultKind.SIGNATURE, "has a signature for different content: the file was edited after it was signed")
    assert faults_of(with_certificates(dep, 64)) == [found]
    assert made == ["sha256", "sha1", "sha384", "sha512"]


def test_more_than_64_certificates_are_reported(dep: bytes) -> None:
    found = (FaultKind.SIGNATURE, "has more than 64 certificates: the certificate table is damaged")
    assert faults_of(with_certificates(dep, 65)) == [found]


def test_debug_information_must_be_at_the_same_place_by_offset_and_by_address() -> None:
    data = path_of("t64.exe").read_bytes()
    found = pefile.PE(data=data).DIRECTORY_ENTRY_DEBUG[0].struct
    texts = [text for _, text in faults_of(patched(data, found.get_field_absolute_offset("PointerToRawData"), "<I", 5))]
    size, right = found.SizeOfData, found.PointerToRawData
    places = f"at 0x5 according to its directory, but at {right:#x} according to its address"
    assert f"has {size} bytes of debug information {places}" in texts


def test_readers_and_writers_use_the_same_limit_for_debug_directories(dep: bytes) -> None:
    """An edit follows 1024 entries and refuses more, so each of as many is looked at here, and more are a fault."""
    (section, *_) = read_pe(dep, name="x.dll").sections
    entry = optional(dep) + 112 + 6 * 8
    many = patched(dep, entry, "<II", section.address, 28 * 1025)
    message = "a debug directory of 1025 entries"
    assert f"has {message}, which is damaged: the limit is 1024" in [text for _, text in faults_of(many)]
    with pytest.raises(PeError, match=f"^x\\.dll: {message}; expected at most 1024$"):
        list(iter_debug_entries(open_image(PeBytes(memoryview(many), "x.dll"))))


def test_the_65th_entry_of_a_debug_directory_is_checked() -> None:
    data, size = path_of("t64.exe").read_bytes(), 28 * 65
    (section, *_) = read_pe(data, name="x.dll").sections
    grown = patched(data, optional(data) + 112 + 6 * 8, "<II", section.address, size)
    cleared = grown[: section.offset] + bytes(size) + grown[section.offset + size :]
    last = section.offset + size - 28
    wrong = patched(cleared, last + 16, "<III", 9, section.address, 5)
    places = f"at 0x5 according to its directory, but at {section.offset:#x} according to its address"
    assert f"has 9 bytes of debug information {places}" in [text for _, text in faults_of(wrong)]


def test_an_entry_point_outside_all_code_is_reported() -> None:
    data = path_of("program.exe").read_bytes()
    assert faults_of(patched(data, optional(data) + 16, "<I", 0x2000)) == [
        (FaultKind.LAYOUT, "has its entry point at the address 0x2000, but no section has code there")
    ]


@given(st.data())
def test_no_changed_byte_causes_a_traceback(choice: st.DataObject) -> None:
    data = bytearray(path_of("api7.dll").read_bytes())
    data[choice.draw(st.integers(2, 0x3FF))] ^= choice.draw(st.integers(1, 255))
    with suppress(PeError):
        find_layout_faults(bytes(data), read_pe(bytes(data), name="x.dll"), name="x.dll")
