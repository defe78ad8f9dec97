"""Tests of `rocwheel.environment.file_reports`."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from rocwheel.binary.pe.header import PeError
from rocwheel.environment.file_reports import read_pe_report
from rocwheel.environment.read_tree import read_tree
from tests.binary.pe.test_facts import MADE, path_of
from tests.support.pe_files import pe_file

if TYPE_CHECKING:
    from pathlib import Path


DEP = (MADE / "dep6.dll").read_bytes()


def test_a_dll_from_which_nothing_is_imported_is_not_listed() -> None:
    report = read_pe_report(memoryview(pe_file("a.dll", "used.dll", unused=("absent.dll",))), name="a.dll")
    assert report is not None
    assert report.imports == ("used.dll",)


def test_normal_and_delayed_imports_of_a_dll_are_listed() -> None:
    api = read_pe_report(memoryview((MADE / "api7.dll").read_bytes()), name="api7.dll")
    assert api is not None
    assert (api.is_dll, api.is_amd64, api.imports, api.delay_imports, api.faults) == (True, True, (), ("dep6.dll",), ())
    program = read_pe_report(memoryview((MADE / "program.exe").read_bytes()), name="program.exe")
    assert program is not None
    assert (program.is_dll, program.imports) == (False, ("api.dll", "dep6.dll"))


def test_only_the_machine_of_a_32_bit_file_is_read() -> None:
    report = read_pe_report(memoryview(path_of("t32.exe").read_bytes()), name="t32.exe")
    assert report is not None
    assert (report.machine, report.is_dll, report.pe, report.imports) == (0x14C, False, None, ())


def test_data_that_begins_with_mz_is_not_necessarily_a_program() -> None:
    assert read_pe_report(memoryview(b"MZ, the initials"), name="notes.txt") is None


def test_a_truncated_dll_is_an_error() -> None:
    with pytest.raises(PeError, match="truncated or damaged"):
        read_pe_report(memoryview(DEP[:100]), name="dep6.dll")


@pytest.mark.parametrize("size", [2, 64, 200, 0x180, len(DEP) - 1])
def test_a_damaged_dll_is_reported_and_other_files_are_read(tmp_path: Path, size: int) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/cut.dll").write_bytes(DEP[:size])
    (tmp_path / "bin/dep6.dll").write_bytes(DEP)
    cut, whole = read_tree([tmp_path]).files
    assert cut.problem
    assert cut.windows is None
    assert whole.windows is not None


def test_dlls_in_wheels_are_read_like_those_in_folders(tmp_path: Path) -> None:
    wheel = tmp_path / "demo-1.0-py3-none-win_amd64.whl"
    with ZipFile(wheel, "w") as archive:
        archive.writestr("demo/dep6.dll", DEP)
        archive.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/dep6.dll").write_bytes(DEP)
    packed = read_tree([wheel]).by_path["demo/dep6.dll"].windows
    assert packed is not None
    assert packed == read_tree([tmp_path / "tree"]).by_path["dep6.dll"].windows


def test_a_windows_environment_has_its_packages_in_lib(tmp_path: Path) -> None:
    info = tmp_path / "Lib/site-packages/demo-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
    assert [owner.name for owner in read_tree([tmp_path]).distributions][:1] == ["demo"]


def test_a_dll_for_another_machine_is_recognized(tmp_path: Path) -> None:
    data = bytearray(DEP)
    (at,) = struct.unpack_from("<I", data, 0x3C)
    struct.pack_into("<H", data, at + 4, 0xAA64)
    report = read_pe_report(memoryview(bytes(data)), name="dep6.dll")
    assert report is not None
    assert (report.machine, report.is_amd64) == (0xAA64, False)
