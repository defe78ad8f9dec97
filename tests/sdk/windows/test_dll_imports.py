"""The reader of import tables that ships with the packages, beside rocwheel's own."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocwheel.binary.pe.facts import read_pe
from rocwheel.sdk.rocm_sdk._dll_imports import DamagedDllError, read_imports
from tests.support.pe_files import pe_file
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

FILES = sorted((ROOT / "tests/fixtures/pe").glob("*.*"))
SMALL = pe_file("api7.dll", "dep6.dll", "KERNEL32.dll", delayed=("later.dll",))


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.suffix in (".dll", ".exe")], ids=lambda path: path.name
)
def test_imports_of_linked_dlls_match_those_that_rocwheel_reads(path: Path) -> None:
    assert read_imports(path) == [dll.name for dll in read_pe(path.read_bytes(), name=path.name).imports]


def test_delay_loaded_dlls_are_not_listed_as_needed(tmp_path: Path) -> None:
    (tmp_path / "api7.dll").write_bytes(SMALL)
    assert read_imports(tmp_path / "api7.dll") == ["dep6.dll", "KERNEL32.dll"]


def test_a_dll_from_which_nothing_is_imported_is_not_listed_as_needed(tmp_path: Path) -> None:
    (tmp_path / "x.dll").write_bytes(pe_file("x.dll", "dep6.dll", unused=("absent.dll",)))
    assert read_imports(tmp_path / "x.dll") == ["dep6.dll"]


def test_a_dll_without_imports_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.dll").write_bytes(pe_file("x.dll"))
    assert read_imports(tmp_path / "x.dll") == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), max_size=8), st.integers(0, len(SMALL)))
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, changes: list[tuple[int, int]], size: int) -> None:
    data = bytearray(SMALL)
    for at, value in changes:
        data[at] = value
    for part in (data, data[:size]):
        (tmp_path / "x.dll").write_bytes(part)
        with suppress(DamagedDllError):
            assert len(read_imports(tmp_path / "x.dll")) <= 4096


def test_an_endless_import_table_is_refused(tmp_path: Path) -> None:
    # Given names that all are the same one, as far as the section goes
    data = bytearray(pe_file("x.dll", *["a.dll"] * 5000))
    (tmp_path / "x.dll").write_bytes(data)
    with pytest.raises(DamagedDllError, match=r"^it imports more than 4096 DLLs$"):
        read_imports(tmp_path / "x.dll")
