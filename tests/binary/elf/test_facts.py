"""Tests of `rocwheel.binary.elf.facts`."""

from __future__ import annotations

import mmap
import pickle
import re
import struct
from contextlib import suppress

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.elf.dynamic import DynamicFile, DynamicTable, RunpathTag, StringTable
from rocwheel.binary.elf.facts import Elf, ElfKind, read_elf
from rocwheel.binary.elf.header import ElfBytes, ElfError, Segment, read_sections
from rocwheel.binary.elf.symbols import VersionNeed, VersionReader
from tests.support.places import ELF_FIXTURES as FIXTURES

ANSWER = (FIXTURES / "libanswer.so.1").read_bytes()


def read(name: str) -> Elf:
    return read_elf((FIXTURES / name).read_bytes(), name=name)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("libanswer.so.1", ElfKind.SHARED_OBJECT),
        ("libno-sections.so", ElfKind.SHARED_OBJECT),
        ("libaarch64.so", ElfKind.SHARED_OBJECT),
        ("program-no-pie", ElfKind.EXECUTABLE),
        ("program-pie", ElfKind.EXECUTABLE),
        ("static", ElfKind.EXECUTABLE),
        ("static-pie", ElfKind.EXECUTABLE),
        ("library.o", ElfKind.RELOCATABLE),
        ("gfx906.co", ElfKind.CODE_OBJECT),
        ("libanswer.debug", ElfKind.OTHER),
    ],
)
def test_the_kind_tells_what_a_file_is_for(name: str, kind: ElfKind) -> None:
    assert read(name).kind is kind


def test_the_facts_of_a_library_are_read() -> None:
    elf = read("libanswer.so.1")
    assert (elf.machine, elf.type, elf.osabi) == (62, 3, 0)
    assert elf.is_dynamic
    assert elf.soname == "libanswer.so.1"
    assert elf.runpath == "/opt/rocm/lib"
    assert elf.rpath is None
    assert elf.interpreter is None
    assert elf.version_definitions == ("ANSWER_1.0", "ANSWER_1.1")
    assert elf.build_id == "abcdef0123456789"


def test_the_facts_of_a_program_are_read() -> None:
    elf = read("program-pie")
    assert elf.interpreter == "/lib64/ld-linux-x86-64.so.2"
    assert elf.soname is None
    assert elf.needed == ("libanswer.so.1",)
    assert elf.runpath == "/opt/answer"
    assert elf.version_needs == (VersionNeed("libanswer.so.1", "ANSWER_1.0"),)


def test_an_rpath_is_distinguished_from_a_runpath() -> None:
    elf = read("librpath.so")
    assert (elf.rpath, elf.runpath) == ("/opt/rocm/lib", None)


def test_a_run_path_may_be_any_bytes() -> None:
    data = ANSWER.replace(b"/opt/rocm/lib\0", b"/opt/caf\xe9/lib\0")
    assert read_elf(data, name="lib.so").runpath == "/opt/caf\udce9/lib"


@pytest.mark.parametrize(("name", "imports"), [("libanswer.so.1", True), ("libplain.so", False), ("gfx906.co", False)])
def test_an_import_of_dlopen_is_detected(name: str, imports: bool) -> None:
    assert read(name).imports_dlopen is imports


def test_a_file_without_section_headers_has_the_same_facts() -> None:
    assert read_sections((FIXTURES / "libno-sections.so").read_bytes(), name="libno-sections.so") == ()
    assert read("libno-sections.so") == read("liblld.so")


@pytest.mark.parametrize("name", ["static", "library.o", "libanswer.debug"])
def test_a_file_without_a_dynamic_section_is_not_dynamic(name: str) -> None:
    elf = read(name)
    assert not elf.is_dynamic
    assert elf.needed == ()


def test_facts_can_be_pickled_and_compared() -> None:
    elf = read("program-pie")
    assert pickle.loads(pickle.dumps(elf)) == elf


def test_sections_agree_with_pyelftools() -> None:
    sections = read_sections(ANSWER, name="libanswer.so.1")
    with (FIXTURES / "libanswer.so.1").open("rb") as file:
        expected = [(s.name, s["sh_addr"], s["sh_offset"], s["sh_size"]) for s in ELFFile(file).iter_sections()]
    assert [(s.name, s.address, s.offset, s.size) for s in sections] == expected


def test_a_memory_map_can_be_closed_after_an_error() -> None:
    with (FIXTURES / "libslash.so").open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        with pytest.raises(ElfError) as caught:
            read_elf(data, name="libslash.so")
        data.close()
    assert caught.value.source == "libslash.so"


@pytest.mark.parametrize(
    ("rpath", "runpath", "expected"),
    [
        ("/old", "/new", (RunpathTag.RUNPATH, "/new")),
        ("/old", "", (RunpathTag.RUNPATH, "")),
        ("/old", None, (RunpathTag.RPATH, "/old")),
        (None, "/new", (RunpathTag.RUNPATH, "/new")),
        (None, None, (None, None)),
    ],
)
def test_a_runpath_hides_an_rpath(
    rpath: str | None, runpath: str | None, expected: tuple[RunpathTag | None, str | None]
) -> None:
    elf = Elf(machine=62, kind=ElfKind.SHARED_OBJECT, type=3, osabi=0, segments=(), rpath=rpath, runpath=runpath)
    assert (elf.run_path_tag, elf.run_path) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("libplain.so", True),
        ("program-pie", True),
        ("static", False),
        ("library.o", False),
        ("gfx906.co", False),
        ("static-pie", True),
    ],
)
def test_the_loader_loads_shared_libraries_and_dynamic_programs(name: str, expected: bool) -> None:
    assert read_elf((FIXTURES / name).read_bytes(), name=name).is_loadable is expected


def changed(offset: int, data: bytes) -> bytes:
    return ANSWER[:offset] + data + ANSWER[offset + len(data) :]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "lib.so: empty; expected an ELF file, which begins with b'\\x7fELF'", id="empty"),
        pytest.param(
            b"#!/bin/sh\n",
            "lib.so: not an ELF file (the file begins with b'#!/b'); expected an ELF file, which begins with "
            "b'\\x7fELF'",
            id="script",
        ),
        pytest.param(
            changed(4, b"\1"),
            "lib.so: a 32-bit ELF file; expected a 64-bit little-endian ELF file. "
            "Leave the file out: ROCm programs don't load such files.",
            id="32-bit",
        ),
        pytest.param(
            changed(5, b"\2"),
            "lib.so: a big-endian ELF file; expected a 64-bit little-endian ELF file. "
            "Leave the file out: ROCm programs don't load such files.",
            id="big-endian",
        ),
        pytest.param(
            ANSWER[:40],
            "lib.so: the ELF header would span 0x0 to 0x40, but the file ends at 0x28; expected a whole ELF file. "
            "The file is truncated or damaged. Copy the file again, or rebuild it.",
            id="cut in the header",
        ),
        pytest.param(
            ANSWER[:-100],
            "lib.so: the section header table would span 0x3260 to 0x37a0, but the file ends at 0x373c; "
            "expected a whole ELF file. The file is truncated or damaged. Copy the file again, or rebuild it.",
            id="cut at the end",
        ),
        pytest.param(
            changed(0x36, b"\x20"), "lib.so: a program header of 32 bytes; expected 56 bytes", id="program header size"
        ),
        pytest.param(
            ANSWER.replace(b"libanswer.so.1", b"lib/nswer.so.1"),
            "lib.so: the SONAME 'lib/nswer.so.1'; expected a plain file name. "
            "Link the library again with -Wl,-soname=NAME, or leave the library out.",
            id="SONAME with a slash",
        ),
        pytest.param(
            ANSWER.replace(b"libanswer.so.1", b"..\0answer.so.1"),
            "lib.so: the SONAME '..'; expected a plain file name. "
            "Link the library again with -Wl,-soname=NAME, or leave the library out.",
            id="SONAME of the parent folder",
        ),
        pytest.param(
            ANSWER.replace(b"libanswer.so.1", b"libanswe\xff.so.1"),
            "lib.so: the SONAME is b'libanswe\\xff.so.1'; expected UTF-8 text",
            id="SONAME that is no text",
        ),
    ],
)
def test_an_unusable_file_is_reported(data: bytes, message: str) -> None:
    with pytest.raises(ElfError, match=f"^{re.escape(message)}$"):
        read_elf(data, name="lib.so")


def test_overlapping_version_tables_are_refused() -> None:
    """Each of the 8192 entries for a library would have 8192 versions."""
    entry = struct.pack("<HHIII", 1, 8192, 0, 16, 16)
    data = entry * 20_000
    load = Segment(1, 4, 0, 0, 0, len(data), len(data), 4096)
    dynamic = DynamicTable(0, 0, 0, ((0x6FFFFFFE, 0), (0x6FFFFFFF, 8192)))
    file = DynamicFile(ElfBytes(memoryview(data), "lib.so"), (load,), dynamic, StringTable(0, 0, 0))
    message = "lib.so: more version names than a table can hold; expected at most 8192"
    with pytest.raises(ElfError, match=f"^{message}$"):
        list(VersionReader(file).need_offsets())


names = st.sampled_from(sorted(path.name for path in FIXTURES.iterdir()))


@given(name=names, size=st.integers(min_value=0, max_value=20_000))
def test_a_truncated_file_gives_facts_or_an_elf_error(name: str, size: int) -> None:
    data = (FIXTURES / name).read_bytes()[:size]
    with suppress(ElfError):
        read_elf(data, name=name)
        read_sections(data, name=name)


@given(name=names, data=st.data())
def test_a_damaged_file_gives_facts_or_an_elf_error(name: str, data: st.DataObject) -> None:
    content = bytearray((FIXTURES / name).read_bytes())
    places = st.one_of(st.integers(0, 0x3FF), st.integers(0, len(content) - 1))
    for place in data.draw(st.lists(places.filter(lambda place: place < len(content)), min_size=1, max_size=8)):
        content[place] = data.draw(st.integers(0, 255))
    with suppress(ElfError):
        read_elf(content, name=name)
        read_sections(content, name=name)
