"""Tests of `rocwheel.binary.elf.facts`."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.facts import ElfTraits, read_elf_traits
from rocwheel.binary.elf.header import ElfError

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

SOURCE = """
int answer(void) { return 42; }
int number = 7;
__attribute__((weak)) int weak(void) { return 1; }
__attribute__((visibility("hidden"))) int hidden(void) { return 1; }
__attribute__((visibility("protected"))) int shielded(void) { return 1; }
static int local(void) { return 1; }
extern int other(void);
int user(void) { return other() + local(); }
"""


def traits(folder: Path, *options: str, source: str = SOURCE) -> ElfTraits:
    (folder / "a.c").write_text(source)
    target = folder / "a.so"
    command = ["gcc", "-shared", "-fPIC", "-nostdlib", "-o", str(target), str(folder / "a.c"), *options]
    subprocess.run(command, check=True, capture_output=True)
    return read_elf_traits(target.read_bytes(), name="a.so")


def test_exports_are_the_strong_symbols_that_others_can_bind_to(tmp_path: Path) -> None:
    assert traits(tmp_path).exports == {b"answer", b"number", b"shielded", b"user"}


def test_an_object_copied_into_a_program_is_not_an_export(tmp_path: Path) -> None:
    traits(tmp_path)
    (tmp_path / "main.c").write_text("extern int number; int own = 2; int _start(void) { return number + own; }")
    target, library = tmp_path / "main", tmp_path / "a.so"
    command = ["gcc", "-nostdlib", "-no-pie", "-fno-pic", "-rdynamic", "-o", str(target), str(tmp_path / "main.c")]
    command += [str(library), "-Wl,--unresolved-symbols=ignore-in-shared-libs"]
    subprocess.run(command, check=True, capture_output=True)
    relocations = subprocess.run(["readelf", "-rW", str(target)], check=True, capture_output=True, text=True).stdout
    assert re.search(r"_COPY .* number", relocations)
    found = read_elf_traits(target.read_bytes(), name="main")
    assert (b"own" in found.exports, b"number" in found.exports) == (True, False)
    assert b"number" in found.linkage.definitions


def test_the_compiler_is_read_from_the_comment_section(tmp_path: Path) -> None:
    (compiler,) = traits(tmp_path).compilers
    assert compiler.startswith("GCC: (")


def test_an_ordinary_library_has_no_bad_traits(tmp_path: Path) -> None:
    found = traits(tmp_path)
    assert (found.has_executable_stack, found.has_text_relocations, found.has_writable_code) == (False, False, False)


def test_an_executable_stack_is_detected(tmp_path: Path) -> None:
    assert traits(tmp_path, "-Wl,-z,execstack").has_executable_stack


def test_a_library_without_a_stack_header_needs_an_executable_stack_on_x86_64(tmp_path: Path) -> None:
    """Glibc 2.41 refuses to open it, as it does with PT_GNU_STACK and PF_X."""
    traits(tmp_path)
    data = (tmp_path / "a.so").read_bytes()
    silent = data.replace(struct.pack("<II", 0x6474E551, 6), struct.pack("<II", 0, 6))
    assert silent != data
    assert read_elf_traits(silent, name="a.so").has_executable_stack == (data[18] == 62)


def test_a_writable_and_executable_segment_is_detected(tmp_path: Path) -> None:
    assert traits(tmp_path, "-Wl,-N").has_writable_code


def test_text_relocations_are_detected(tmp_path: Path) -> None:
    source = '__asm__(".text\\n.quad away\\n"); extern int away; int number = 7;\n'
    assert traits(tmp_path, "-Wl,-z,notext", source=source).has_text_relocations


def test_a_stripped_library_has_the_same_exports(tmp_path: Path) -> None:
    whole = traits(tmp_path)
    assert traits(tmp_path, "-s").exports == whole.exports


def test_a_damaged_file_is_reported_by_name(tmp_path: Path) -> None:
    traits(tmp_path)
    data = (tmp_path / "a.so").read_bytes()
    with pytest.raises(ElfError, match=r"^a\.so: "):
        read_elf_traits(data[:200], name="a.so")
