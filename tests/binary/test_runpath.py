"""Tests of `rocwheel.binary.runpath`."""

from __future__ import annotations

import mmap
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.elf.header import ElfError, Segment, read_sections
from rocwheel.binary.runpath import plan_runpath
from rocwheel.core.patch import FilePatch, Replacement
from rocwheel.core.reading import join_data
from tests.support.places import ELF_FIXTURES as FIXTURES
from tests.support.places import ROOT
from tests.support.run_paths import LONG, PT_LOAD, RPATH, RUNPATH, apply, edit, load, run, run_paths

if TYPE_CHECKING:
    from rocwheel.binary.elf.dynamic import RunpathTag


@pytest.mark.parametrize("name", ["static", "library.o"])
def test_a_file_without_a_dynamic_section_is_refused(name: str) -> None:
    message = (
        "file: no dynamic section, so no space for a run path; expected a shared library or a dynamically linked "
        "program. Leave the file unchanged: static programs and object files don't search for libraries."
    )
    with pytest.raises(ElfError, match=f"^{re.escape(message)}$"):
        edit(load(name), "$ORIGIN")


@pytest.mark.parametrize("tag", [RUNPATH, RPATH])
def test_a_static_pie_program_is_refused(tag: RunpathTag) -> None:
    message = (
        "file: a static program, which doesn't search for libraries, and which glibc terminates if it has a run "
        "path; "
        "expected a shared library or a dynamically linked program. "
        "Leave the file unchanged. To remove its run path, use an empty value."
    )
    with pytest.raises(ElfError, match=f"^{re.escape(message)}$"):
        edit(load("static-pie"), "$ORIGIN", tag)


def test_removing_a_missing_run_path_from_a_static_pie_program_changes_nothing() -> None:
    assert plan_runpath(load("static-pie"), "", RUNPATH, name="file").is_identity


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc and glibc's static libraries (Debian: gcc, libc6-dev)")
def test_a_static_pie_program_starts_after_its_run_path_is_removed(tmp_path: Path) -> None:
    """A program with all of glibc, and so too large for a fixture."""
    command = ["gcc", "-static-pie", "-Wl,-rpath,/opt/rocm/lib", "-x", "c", "-", "-o", str(tmp_path / "linked")]
    subprocess.run(command, input=b"int main(void) { return 42; }", check=True)
    linked = (tmp_path / "linked").read_bytes()
    assert run(linked, tmp_path) in {-signal.SIGSEGV, -signal.SIGABRT}
    assert run(edit(linked, ""), tmp_path) == 42


def test_a_code_object_is_refused() -> None:
    message = "file: an AMD GPU code object, which can't have a run path. Leave the file unchanged."
    with pytest.raises(ElfError, match=f"^{re.escape(message)}$"):
        edit(load("gfx906.co"), "$ORIGIN")


def test_the_dynamic_loader_is_refused() -> None:
    data = load("libplain.so").replace(b"libanswer.so.1", b"ld-linux-a.so.")
    message = "file: the dynamic loader itself, which can't have a run path. Leave the file unchanged."
    with pytest.raises(ElfError, match=f"^{re.escape(message)}$"):
        edit(data, "$ORIGIN")


def test_a_mips_file_is_refused() -> None:
    data = bytearray(load("libplain.so"))
    data[18:20] = b"\x08\0"
    message = (
        "file: a MIPS file, whose dynamic section can't be changed in place. Link the file with the run path "
        "that it needs."
    )
    with pytest.raises(ElfError, match=f"^{re.escape(message)}$"):
        edit(bytes(data), "$ORIGIN")


def test_a_program_with_an_enormous_bss_is_refused() -> None:
    data = bytearray(load("program-bss"))
    segments = read_elf(data, name="file").segments
    index = max(index for index, segment in enumerate(segments) if segment.type == PT_LOAD)
    data[64 + 56 * index + 40 : 64 + 56 * index + 48] = (1 << 31).to_bytes(8, "little")
    message = (
        "file: a program whose memory image is 0x7ffff000 bytes longer than its file; expected at most 0x40000000 "
        "bytes and "
        "segments on page boundaries. Link the file with the run path that it needs."
    )
    with pytest.raises(ElfError, match=f"^{re.escape(message)}$"):
        edit(bytes(data), LONG)


def test_overlapping_tables_are_refused() -> None:
    data = load("libplain.so")
    strings = next(section for section in read_sections(data, name="file") if section.name == ".dynstr")
    entry = (5).to_bytes(8, "little") + strings.address.to_bytes(8, "little")
    assert data.count(entry) == 1
    message = "file: tables that overlap; expected tables that don't overlap"
    with pytest.raises(ElfError, match=f"^{message}$"):
        edit(data.replace(entry, entry[:8] + bytes(8)), LONG)


def test_a_dynamic_section_at_two_offsets_is_refused() -> None:
    data = bytearray(load("libplain.so"))
    index, segment = next(
        (index, segment) for index, segment in enumerate(read_elf(data, name="file").segments) if segment.type == 2
    )
    data[64 + 56 * index + 16 : 64 + 56 * index + 24] = (segment.address + 16).to_bytes(8, "little")
    message = (
        f"file: a dynamic section that claims to be at both {segment.offset:#x} and {segment.offset + 16:#x} "
        "in the file"
    )
    with pytest.raises(ElfError, match=f"^{message}$"):
        edit(bytes(data), LONG)


def test_detached_debug_information_is_refused() -> None:
    message = "file: debug information that was detached from a program; expected the program itself"
    with pytest.raises(ElfError, match=f"^{re.escape(message)}$"):
        edit(load("libanswer.debug"), "$ORIGIN")


LONGER = f"{LONG}:{'/opt/a/very/long/path' * 30}"
LIBRARIES = [
    "libaarch64.so",
    "libanswer.so.1",
    "libbss.so",
    "libgold.so",
    "liblarge.so",
    "liblld-runpath.so",
    "liblld.so",
    "libmold.so",
    "libno-sections.so",
    "libpatchelf.so",
    "libplain.so",
    "librpath.so",
    "libshared-tail.so",
    "libsysv-hash.so",
]
PROGRAMS = [
    "program-64k",
    "program-aarch64",
    "program-bss",
    "program-gold",
    "program-lld",
    "program-lld-no-pie",
    "program-lld-no-runpath",
    "program-mold",
    "program-no-pie",
    "program-patchelf-0.14",
    "program-patchelf-0.17",
    "program-pie",
]
LOAD_LIBRARY = ROOT / "tests/support/programs/load_library.py"
LOADED = "loaded\nprogram headers as in the file\n"
PT_PHDR = 6


def loads(data: bytes) -> list[Segment]:
    return [segment for segment in read_elf(data, name="file").segments if segment.type == PT_LOAD]


def load_library(path: Path) -> str:
    """Load a library in a process of its own; return what it says of it."""
    done = subprocess.run([sys.executable, "-SE", LOAD_LIBRARY, path], capture_output=True, check=False, text=True)
    return done.stdout + done.stderr


def loaded(data: bytes, folder: Path) -> str:
    path = folder / "libloaded.so"
    path.write_bytes(data)
    return load_library(path)


# Where the run path goes


def test_a_run_path_that_fits_is_written_in_place() -> None:
    data = load("libanswer.so.1")
    patch = plan_runpath(data, "$ORIGIN", RUNPATH, name="file")
    assert patch == FilePatch(len(data), (Replacement.of(data.index(b"/opt/rocm/lib\0"), b"$ORIGIN\0\0\0\0\0\0\0"),))


def test_setting_the_same_run_path_changes_nothing() -> None:
    patch = plan_runpath(load("libanswer.so.1"), "/opt/rocm/lib", RUNPATH, name="file")
    assert patch.is_identity
    assert patch == FilePatch(14240)


def test_only_the_tag_changes_if_the_string_stays_the_same() -> None:
    patch = plan_runpath(load("librpath.so"), "/opt/rocm/lib", RUNPATH, name="file")
    assert [bytes(new.data)[0] for new in patch.replacements] == [29]
    assert run_paths(apply(load("librpath.so"), patch)) == (None, "/opt/rocm/lib")


def test_a_run_path_that_is_a_suffix_of_another_string_is_shared() -> None:
    data = load("libanswer.so.1")
    patch = plan_runpath(data, "rocm/lib", RUNPATH, name="file")
    assert patch.size == len(data)
    assert [len(new.data) for new in patch.replacements] == [16]
    assert run_paths(apply(data, patch)) == (None, "rocm/lib")


def test_bytes_used_by_another_string_are_not_overwritten(tmp_path: Path) -> None:
    data = load("libshared-tail.so")
    changed = edit(data, "$ORIGIN")
    old = data.index(b"/opt/rocm/answer\0")
    assert changed[old : old + 17] == b"/opt/rocm/answer\0"
    assert run_paths(changed) == (None, "$ORIGIN")
    assert loaded(changed, tmp_path) == LOADED


def test_a_longer_run_path_adds_one_segment() -> None:
    data = load("libanswer.so.1")
    changed = edit(data, LONG)
    assert run_paths(changed) == (None, LONG)
    assert len(loads(changed)) == len(loads(data)) + 1
    assert loads(changed)[-1].flags == 4


def test_the_next_run_path_uses_the_slack_of_the_added_segment() -> None:
    once = edit(load("libanswer.so.1"), LONG)
    twice = edit(once, LONG + ":/opt/more")
    assert run_paths(twice) == (None, LONG + ":/opt/more")
    assert len(twice) == len(once)
    assert read_elf(twice, name="file").segments == read_elf(once, name="file").segments


def test_a_much_longer_run_path_extends_the_added_segment() -> None:
    once = edit(load("libanswer.so.1"), LONG)
    twice = edit(once, LONGER)
    assert run_paths(twice) == (None, LONGER)
    assert len(loads(twice)) == len(loads(once))
    assert loads(twice)[-1].file_size - loads(once)[-1].file_size == len(twice) - len(once) == len(LONGER) - len(LONG)


def test_a_segment_at_the_end_of_both_file_and_memory_grows_instead(tmp_path: Path) -> None:
    data = load("libno-sections.so")
    changed = edit(data, LONG)
    assert len(loads(changed)) == len(loads(data))
    assert changed[32:40] == data[32:40]
    assert loaded(changed, tmp_path) == LOADED


def test_a_program_with_data_at_the_end_does_not_grow() -> None:
    program = load("program-pie") + b"payload" + bytes(9)
    message = "16 bytes after the last section, which the program may read from the end of the file"
    with pytest.raises(ElfError, match=f"^file: {message}"):
        edit(program, LONG)


def test_a_program_with_data_at_the_end_accepts_a_run_path_that_fits() -> None:
    program = edit(load("program-pie"), LONG) + b"payload"
    assert edit(program, "$ORIGIN").endswith(b"payload")


def test_zero_bytes_at_the_end_of_a_program_are_not_data() -> None:
    assert run_paths(edit(load("program-pie") + bytes(9), LONG))[1] == LONG


def test_an_empty_run_path_removes_only_the_entry() -> None:
    data = load("libanswer.so.1")
    changed = edit(data, "")
    assert run_paths(changed) == (None, None)
    assert len(changed) == len(data)
    expected = msgspec.structs.replace(read_elf(data, name="file"), runpath=None)
    assert read_elf(changed, name="file") == expected


def test_removing_a_missing_run_path_changes_nothing() -> None:
    assert plan_runpath(load("libplain.so"), "", RUNPATH, name="file").is_identity


@pytest.mark.parametrize(
    ("tag", "expected"), [(RPATH, (LONG, None)), (RUNPATH, (None, LONG))], ids=["RPATH", "RUNPATH"]
)
@pytest.mark.parametrize("name", LIBRARIES + PROGRAMS)
def test_only_the_requested_tag_remains(name: str, tag: RunpathTag, expected: tuple[str | None, str | None]) -> None:
    assert run_paths(edit(load(name), LONG, tag)) == expected


def test_a_second_tag_is_removed() -> None:
    data = load("libanswer.so.1")
    section = next(section for section in read_sections(data, name="file") if section.name == ".dynamic")
    entries = data[section.offset : section.offset + section.size]
    runpath = next(entries[i : i + 16] for i in range(0, len(entries), 16) if entries[i] == 29)
    end = next(i for i in range(0, len(entries), 16) if entries[i : i + 8] == bytes(8))
    both = entries[:end] + b"\x0f" + runpath[1:] + entries[end + 16 :]
    data = data[: section.offset] + both + data[section.offset + section.size :]
    assert run_paths(data) == ("/opt/rocm/lib", "/opt/rocm/lib")
    assert run_paths(edit(data, "/opt/rocm/lib", RPATH)) == ("/opt/rocm/lib", None)


def test_a_run_path_that_is_not_utf8_can_be_set_kept_and_replaced() -> None:
    data = edit(load("libanswer.so.1"), "/opt/caf\udce9/lib")
    assert b"\0/opt/caf\xe9/lib\0" in data
    assert run_paths(data) == (None, "/opt/caf\udce9/lib")
    assert plan_runpath(data, "/opt/caf\udce9/lib", RUNPATH, name="file").is_identity
    assert run_paths(edit(data, "/opt/new")) == (None, "/opt/new")
    assert run_paths(edit(data, "")) == (None, None)


# What becomes of the rest


@pytest.mark.parametrize("name", LIBRARIES + PROGRAMS)
def test_no_other_section_changes(name: str) -> None:
    data = load(name)
    changed = edit(edit(data, LONG), LONGER)
    old, new = read_sections(data, name="file"), read_sections(changed, name="file")
    assert len(new) == len(old)
    for before, after in zip(old, new, strict=True):
        if before.name not in {".dynstr", ".dynamic"}:
            assert after == before
        if before.name not in {".dynstr", ".dynamic", ".symtab"} and before.type != 8:
            span = slice(before.offset, before.offset + before.size)
            assert changed[span] == data[span]


@pytest.mark.parametrize("name", LIBRARIES + PROGRAMS)
def test_no_other_fact_changes(name: str) -> None:
    data = load(name)
    before, after = read_elf(data, name="file"), read_elf(edit(edit(data, LONG), LONGER), name="file")
    assert after == msgspec.structs.replace(before, rpath=None, runpath=LONGER, segments=after.segments)
    assert len(after.segments) - len(before.segments) <= 1


@pytest.mark.parametrize("name", sorted({*LIBRARIES, *PROGRAMS} - {"libbss.so"}))
def test_the_program_headers_are_loaded_at_the_address_that_kernels_expect(name: str) -> None:
    changed = edit(load(name), LONG)
    table = int.from_bytes(changed[32:40], "little")
    segments = loads(changed)
    assert [segment.address for segment in segments] == sorted(segment.address for segment in segments)
    holder = next(segment for segment in segments if segment.offset <= table < segment.end)
    assert holder.address - holder.offset == segments[0].address - segments[0].offset
    for segment in read_elf(changed, name="file").segments:
        if segment.type == PT_PHDR:
            assert (segment.offset, segment.address) == (table, holder.address + table - holder.offset)
    assert all((segment.address - segment.offset) % segment.alignment == 0 for segment in segments)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if "aarch64" not in name])
def test_a_program_runs_after_each_change(name: str, tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "libanswer.so.1", tmp_path)
    once = edit(load(name), f"{tmp_path}:{LONG}")
    assert run(once, tmp_path) == 42
    assert run(edit(once, f"{LONGER}:$ORIGIN", RPATH), tmp_path) == 42


def test_a_program_does_not_find_its_library_after_its_run_path_is_removed(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "libanswer.so.1", tmp_path)
    program = edit(load("program-lld-no-runpath"), "$ORIGIN")
    assert run(program, tmp_path) == 42
    assert run(edit(program, ""), tmp_path) == 127


@pytest.mark.skipif(not shutil.which("qemu-aarch64"), reason="needs qemu-aarch64 (Debian: qemu-user)")
@pytest.mark.skipif(
    not Path("/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1").exists(),
    reason="needs an AArch64 loader (Debian: libc6-arm64-cross)",
)
def test_an_aarch64_program_runs_after_each_change(tmp_path: Path) -> None:
    (tmp_path / "libanswer.so.1").write_bytes(edit(load("libaarch64.so"), LONG))
    program = tmp_path / "program"
    program.write_bytes(edit(edit(load("program-aarch64"), LONG), f"{LONGER}:{tmp_path}"))
    program.chmod(0o755)
    command = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", str(program)]
    assert subprocess.run(command, check=False).returncode == 42


@pytest.mark.parametrize("name", [name for name in LIBRARIES if "aarch64" not in name])
def test_a_library_loads_after_each_change(name: str, tmp_path: Path) -> None:
    once = edit(load(name), LONG)
    assert loaded(once, tmp_path) == LOADED
    assert loaded(edit(once, LONGER, RPATH), tmp_path) == LOADED


@pytest.mark.skipif(not shutil.which("eu-elflint"), reason="needs eu-elflint (Debian: elfutils)")
@pytest.mark.parametrize("name", LIBRARIES + PROGRAMS)
def test_eu_elflint_reports_nothing_new(name: str, tmp_path: Path) -> None:
    def lint(data: bytes) -> set[str]:
        (tmp_path / "file").write_bytes(data)
        done = subprocess.run(
            ["eu-elflint", "--gnu-ld", tmp_path / "file"], capture_output=True, check=False, text=True
        )
        return {re.sub(r"0x[0-9a-f]+|\d+", "N", line) for line in done.stdout.splitlines()} - {"No errors"}

    assert lint(edit(edit(load(name), LONG), LONGER)) <= lint(load(name))


def test_a_moved_dynamic_section_is_in_a_writable_segment(tmp_path: Path) -> None:
    changed = edit(load("liblld.so"), LONG)
    last = loads(changed)[-1]
    assert last.flags == 6
    dynamic = next(section for section in read_sections(changed, name="file") if section.name == ".dynamic")
    assert last.address <= dynamic.address < last.memory_end
    symbols = subprocess.run(
        ["readelf", "-Ws", "-"], input=changed, capture_output=True, check=False, text=False
    ).stdout
    assert symbols is not None


def test_a_program_header_table_moved_by_another_tool_can_be_moved_again(tmp_path: Path) -> None:
    foreign = edit(load("liblld.so"), LONG) + b"a byte behind the last segment"
    changed = edit(foreign, LONGER)
    assert run_paths(changed) == (None, LONGER)
    assert len(loads(changed)) == len(loads(foreign)) + 1
    assert loaded(changed, tmp_path) == LOADED


def test_a_large_bss_does_not_increase_the_size_of_a_library() -> None:
    data = load("libbss.so")
    changed = edit(data, LONG)
    assert len(changed) - len(data) < 8192
    assert loads(changed)[-1].address >= 1_000_000


def test_a_read_only_segment_is_placed_beyond_the_apparent_end_of_relocations() -> None:
    """A slot of the GOT for a function of 20000 bytes, which eu-elflint takes for 20000 relocated bytes."""
    before, after = (loads(data)[-1] for data in (load("liblarge.so"), edit(load("liblarge.so"), LONG)))
    assert after.address - before.memory_end > 16_000


def test_the_file_is_padded_with_zeros_if_memory_is_longer_than_the_file() -> None:
    data = load("program-bss")
    patch = plan_runpath(data, LONG, RUNPATH, name="file")
    changed = apply(data, patch)
    assert len(changed) > 300_000
    beyond = min(write.start for write in patch.replacements if write.start >= len(data))
    assert beyond - len(data) > 290_000
    assert not any(changed[len(data) : beyond])


def test_a_file_larger_than_four_gigabytes_can_be_changed_and_loaded(tmp_path: Path) -> None:
    data = bytearray(load("libplain.so"))
    size = 5 << 30
    table = int.from_bytes(data[40:48], "little")
    data[40:48] = size.to_bytes(8, "little")
    path = tmp_path / "libhuge.so"
    with path.open("wb") as file:
        file.write(data)
        file.seek(size)
        file.write(data[table:])
    with path.open("rb") as source, mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as view:
        patch = plan_runpath(view, LONG, RUNPATH, name="libhuge.so")
    with path.open("r+b") as target:
        for write in patch.replacements:
            os.pwrite(target.fileno(), bytes(write.data), write.start)
    assert max(write.start for write in patch.replacements) > size
    assert load_library(path) == LOADED
    listed = subprocess.run(["readelf", "-d", path], capture_output=True, check=True, text=True).stdout
    assert f"Library runpath: [{LONG}]" in listed


# Patches


@given(name=st.sampled_from(LIBRARIES + PROGRAMS), start=st.integers(0, 20_000), stop=st.integers(0, 20_000))
def test_any_range_of_the_result_can_be_read(name: str, start: int, stop: int) -> None:
    data = load(name)
    patch = plan_runpath(data, LONGER, RUNPATH, name=name)
    whole = apply(data, patch)
    assert len(whole) == patch.size
    assert join_data(patch.apply(memoryview(data), start, stop)) == whole[start:stop]


def test_unchanged_bytes_are_not_copied() -> None:
    data = load("libanswer.so.1")
    patch = plan_runpath(data, "$ORIGIN", RUNPATH, name="file")
    first, _, last = patch.apply(memoryview(data))
    assert isinstance(first, memoryview)
    assert first.obj is data
    assert isinstance(last, memoryview)
    assert last.obj is data


def test_the_gap_before_an_appended_tail_is_filled_with_zeros() -> None:
    patch = FilePatch(12, (Replacement.of(1, b"XY"), Replacement.of(9, b"end")))
    assert apply(b"abcdef", patch) == b"aXYdef\0\0\0end"


def test_a_patch_can_be_pickled() -> None:
    patch = plan_runpath(load("liblld.so"), LONG, RUNPATH, name="file")
    assert pickle.loads(pickle.dumps(patch)) == patch


@given(
    name=st.sampled_from(LIBRARIES + PROGRAMS),
    values=st.lists(st.text(st.characters(codec="ascii", min_codepoint=33), max_size=700), max_size=5),
)
def test_any_sequence_of_run_paths_leaves_only_the_last_and_adds_one_segment(name: str, values: list[str]) -> None:
    data = load(name)
    changed = data
    for value in values:
        changed = edit(changed, value)
        assert run_paths(changed) == (None, value or None)
    before, after = read_elf(data, name="file"), read_elf(changed, name="file")
    assert len(after.segments) - len(before.segments) <= 1
    assert (after.soname, after.needed, after.version_needs) == (before.soname, before.needed, before.version_needs)


# Bad input


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a\0b", "file: the requested run path 'a\\x00b'; expected a run path without zero bytes"),
        ("\ud800", "file: the requested run path '\\ud800'; expected text or the bytes of a path"),
    ],
)
def test_a_run_path_that_cannot_be_written_is_refused(value: str, message: str) -> None:
    with pytest.raises(ElfError, match=f"^{re.escape(message)}$"):
        edit(load("libplain.so"), value)


@given(name=st.sampled_from(LIBRARIES + PROGRAMS), data=st.data())
def test_a_damaged_file_is_changed_or_refused(name: str, data: st.DataObject) -> None:
    content = bytearray(load(name))
    places = st.one_of(st.integers(0, 0x3FF), st.integers(0, len(content) - 1))
    for place in data.draw(st.lists(places.filter(lambda place: place < len(content)), min_size=1, max_size=8)):
        content[place] = data.draw(st.integers(0, 255))
    with suppress(ElfError):
        patch = plan_runpath(content, LONG, RUNPATH, name=name)
        assert len(apply(bytes(content), patch)) == patch.size
