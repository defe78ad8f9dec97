"""Tests of the files whose run path can't be changed, and of what their tables must be like."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.facts import ElfError, read_elf, read_sections
from rocwheel.binary.runpath.edit import plan_runpath
from tests.support.run_paths import LONG, PT_LOAD, RPATH, RUNPATH, edit, load, run

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.binary.elf.dynamic import RunpathTag


@pytest.mark.parametrize("name", ["static", "library.o"])
def test_a_file_without_dynamic_section_is_refused(name: str) -> None:
    message = (
        "file: no dynamic section, and so no place for a run path; expected a shared library or a dynamically linked "
        "program. Static programs and object files search for no libraries: leave it as it is."
    )
    with pytest.raises(ElfError, match=f"^{re.escape(message)}$"):
        edit(load(name), "$ORIGIN")


@pytest.mark.parametrize("tag", [RUNPATH, RPATH])
def test_a_static_pie_program_is_refused(tag: RunpathTag) -> None:
    message = (
        "file: a static program, which searches for no libraries, and which glibc ends at once if it has a run path; "
        "expected a shared library or a dynamically linked program. "
        "Leave it as it is; an empty value removes the run path that it may have."
    )
    with pytest.raises(ElfError, match=f"^{re.escape(message)}$"):
        edit(load("static-pie"), "$ORIGIN", tag)


def test_a_static_pie_program_without_run_path_stays_so() -> None:
    assert plan_runpath(load("static-pie"), "", RUNPATH, name="file").is_identity


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc and glibc's static libraries (Debian: gcc, libc6-dev)")
def test_a_static_pie_program_starts_once_its_run_path_is_removed(tmp_path: Path) -> None:
    """A program with all of glibc, and so too large for a fixture."""
    command = ["gcc", "-static-pie", "-Wl,-rpath,/opt/rocm/lib", "-x", "c", "-", "-o", str(tmp_path / "linked")]
    subprocess.run(command, input=b"int main(void) { return 42; }", check=True)
    linked = (tmp_path / "linked").read_bytes()
    assert run(linked, tmp_path) in {-signal.SIGSEGV, -signal.SIGABRT}
    assert run(edit(linked, ""), tmp_path) == 42


def test_a_code_object_is_refused() -> None:
    message = "file: an AMD GPU code object, which no run path applies to. Leave it as it is."
    with pytest.raises(ElfError, match=f"^{re.escape(message)}$"):
        edit(load("gfx906.co"), "$ORIGIN")


def test_the_dynamic_loader_is_refused() -> None:
    data = load("libplain.so").replace(b"libanswer.so.1", b"ld-linux-a.so.")
    message = "file: the dynamic loader itself, which no run path applies to. Leave it as it is."
    with pytest.raises(ElfError, match=f"^{re.escape(message)}$"):
        edit(data, "$ORIGIN")


def test_a_mips_file_is_refused() -> None:
    data = bytearray(load("libplain.so"))
    data[18:20] = b"\x08\0"
    message = (
        "file: a MIPS file, whose dynamic section can't be changed in place. Link it with the run path that it needs."
    )
    with pytest.raises(ElfError, match=f"^{re.escape(message)}$"):
        edit(bytes(data), "$ORIGIN")


def test_a_program_with_an_enormous_bss_is_refused() -> None:
    data = bytearray(load("program-bss"))
    segments = read_elf(data, name="file").segments
    index = max(index for index, segment in enumerate(segments) if segment.type == PT_LOAD)
    data[64 + 56 * index + 40 : 64 + 56 * index + 48] = (1 << 31).to_bytes(8, "little")
    message = (
        "file: a program whose memory ends 0x7ffff000 bytes behind its file; expected at most 0x40000000 bytes and "
        "segments on page boundaries. Link it with the run path that it needs."
    )
    with pytest.raises(ElfError, match=f"^{re.escape(message)}$"):
        edit(bytes(data), LONG)


def test_tables_that_lie_in_each_other_are_refused() -> None:
    data = load("libplain.so")
    strings = next(section for section in read_sections(data, name="file") if section.name == ".dynstr")
    entry = (5).to_bytes(8, "little") + strings.address.to_bytes(8, "little")
    assert data.count(entry) == 1
    message = "file: tables that overlap; expected a place of its own for each"
    with pytest.raises(ElfError, match=f"^{message}$"):
        edit(data.replace(entry, entry[:8] + bytes(8)), LONG)


def test_a_dynamic_section_at_two_places_is_refused() -> None:
    data = bytearray(load("libplain.so"))
    index, segment = next(
        (index, segment) for index, segment in enumerate(read_elf(data, name="file").segments) if segment.type == 2
    )
    data[64 + 56 * index + 16 : 64 + 56 * index + 24] = (segment.address + 16).to_bytes(8, "little")
    message = f"file: a dynamic section said to be at both {segment.offset:#x} and {segment.offset + 16:#x} in the file"
    with pytest.raises(ElfError, match=f"^{message}$"):
        edit(bytes(data), LONG)


def test_detached_debug_information_is_refused() -> None:
    message = "file: debug information split off a program; expected the program itself"
    with pytest.raises(ElfError, match=f"^{re.escape(message)}$"):
        edit(load("libanswer.debug"), "$ORIGIN")
