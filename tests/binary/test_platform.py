"""Tests of telling which system a binary is for."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from rocwheel.binary.elf.facts import Elf, ElfKind, read_elf
from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.platform import Platform, platform_of

DLL = Path(__file__).parents[1] / "fixtures/pe/dep6.dll"


def elf(machine: int, kind: ElfKind) -> Elf:
    return Elf(machine=machine, kind=kind, type=3, osabi=0, segments=())


@pytest.mark.parametrize("machine", [62, 183])
@pytest.mark.parametrize("kind", [ElfKind.EXECUTABLE, ElfKind.SHARED_OBJECT])
def test_linked_elf_files_for_a_host_are_for_linux(machine: int, kind: ElfKind) -> None:
    assert platform_of(elf(machine, kind)) is Platform.LINUX


@pytest.mark.parametrize(
    "binary",
    [
        pytest.param(elf(224, ElfKind.CODE_OBJECT), id="code object"),
        pytest.param(elf(62, ElfKind.RELOCATABLE), id="object file"),
        pytest.param(elf(62, ElfKind.OTHER), id="debug information"),
        pytest.param(elf(247, ElfKind.SHARED_OBJECT), id="BPF"),
    ],
)
def test_elf_files_that_no_host_can_load_have_no_platform(binary: Elf) -> None:
    assert platform_of(binary) is None


def test_the_python_interpreter_is_for_linux_and_a_dll_is_for_windows() -> None:
    python = read_elf(Path(sys.executable).read_bytes(), name="python")
    dll = read_pe(DLL.read_bytes(), name="dep6.dll")
    assert (platform_of(python), platform_of(dll)) == (Platform.LINUX, Platform.WINDOWS)


def test_dlls_for_other_machines_are_also_for_windows() -> None:
    dll = read_pe(DLL.read_bytes(), name="dep6.dll")
    arm = msgspec.structs.replace(dll, header=msgspec.structs.replace(dll.header, machine=0xAA64))
    assert platform_of(arm) is Platform.WINDOWS


def test_platforms_have_an_option_spelling_and_a_display_name() -> None:
    assert [str(platform) for platform in Platform] == ["linux", "windows"]
    assert [platform.label for platform in Platform] == ["Linux", "Windows"]
