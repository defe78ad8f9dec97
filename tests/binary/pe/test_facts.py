"""Tests of `rocwheel.binary.pe.facts`."""

from __future__ import annotations

import re
import struct
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lief
import pefile
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.pe.facts import FileVersion, Pe, RunningChecksum, checksum_of, read_pe
from rocwheel.binary.pe.header import PeBytes, read_header
from rocwheel.binary.pe.linkage import ImportedDll
from rocwheel.core.patch import Replacement

if TYPE_CHECKING:
    from rocwheel.binary.pe.header import PeHeader
    from tests.support.tools import RunTool


FIXTURES = Path(__file__).parents[2] / "fixtures/pe"
GNU = (FIXTURES / "two-gnu.dll").read_bytes()


def header_of(data: bytes) -> PeHeader:
    return read_header(PeBytes(memoryview(data), "a.dll"))


def test_the_checksum_agrees_with_gnu_ld() -> None:
    header = header_of(GNU)
    assert header.checksum == 0x15E63
    assert checksum_of(memoryview(GNU), header.checksum_offset) == 0x15E63


@pytest.mark.parametrize("name", ["two.dll", "api7.dll", "dep6.dll", "program.exe"])
def test_the_checksum_agrees_with_pefile(name: str) -> None:
    data = (FIXTURES / name).read_bytes()
    assert checksum_of(memoryview(data), header_of(data).checksum_offset) == pefile.PE(data=data).generate_checksum()


@given(st.lists(st.tuples(st.integers(0x400, len(GNU) - 64), st.binary(min_size=1, max_size=64)), max_size=4))
def test_an_updated_checksum_equals_a_recomputed_checksum(changes: list[tuple[int, bytes]]) -> None:
    at = header_of(GNU).checksum_offset
    data, running = bytearray(GNU), RunningChecksum(memoryview(GNU), at)
    stop = 0
    for start, new in sorted(changes):
        if start >= stop:
            stop = start + len(new)
            data[start:stop] = new
            running.change(Replacement.of(start, new))
    assert running.value(len(data)) == checksum_of(memoryview(data), at)


LAUNCHERS = Path(sysconfig.get_path("purelib"), "installer", "_scripts")
"""Programs that Visual C++ linked, which every environment of these tests has."""
MADE = Path(__file__).parents[2] / "fixtures/pe"
"""What scripts/build-pe-fixtures.sh makes, and what is special about each."""
NAMES = ("dep6.dll", "api7.dll", "program.exe", "t64.exe", "w64.exe", "t64-arm.exe")


def path_of(name: str) -> Path:
    return next(folder / name for folder in (MADE, LAUNCHERS) if (folder / name).exists())


def read(name: str) -> Pe:
    return read_pe(path_of(name).read_bytes(), name=name)


def test_the_link_time_name_and_the_exports_of_a_dll_are_read() -> None:
    exports = read("api7.dll").exports
    assert exports is not None
    assert (exports.dll, exports.names) == ("api.dll", ("api_far", "api_one"))
    assert exports.forwarders == (("api_far", "dep6.dep_one"),)


def test_functions_without_a_name_are_counted() -> None:
    exports = read("dep6.dll").exports
    assert exports is not None
    assert (exports.names, exports.ordinal_count) == (("dep_one", "dep_two"), 3)


def test_imports_and_delayed_imports_are_distinguished() -> None:
    api, program = read("api7.dll"), read("program.exe")
    assert (api.imports, api.delay_imports) == ((), (ImportedDll("dep6.dll", ("dep_one",)),))
    assert program.imports == (
        ImportedDll("api.dll", ("api_far", "api_one")),
        ImportedDll("dep6.dll", ("#7", "dep_two")),
    )
    assert (api.wanted, program.wanted) == (("dep6.dll",), ("api.dll", "dep6.dll"))


def test_the_version_is_read_from_the_resources() -> None:
    assert read("api7.dll").version == FileVersion((7, 2, 26015, 3), (7, 2, 0, 65535))
    assert read("dep6.dll").version is None


@pytest.mark.parametrize(("kind", "is_found"), [(0x66000010, True), (0x80000010, False)], ids=["id", "name"])
def test_the_resource_kind_is_the_lower_half_of_its_field(kind: int, is_found: bool) -> None:
    data = bytearray(path_of("api7.dll").read_bytes())
    assert struct.unpack_from("<I", data, 0xC10) == (16,)
    struct.pack_into("<I", data, 0xC10, kind)
    assert (read_pe(bytes(data), name="x.dll").version is not None) == is_found


def test_dlls_and_programs_are_distinguished() -> None:
    assert [(one.is_dll, one.is_amd64) for one in (read(name) for name in NAMES)] == [
        (True, True),
        (True, True),
        (False, True),
        (False, True),
        (False, True),
        (False, False),
    ]


def by_pefile(path: Path) -> dict[str, Any]:
    pe = pefile.PE(path)

    def dlls_of(table: str) -> list[tuple[str, tuple[str, ...]]]:
        return [
            (entry.dll.decode(), tuple(one.name.decode() if one.name else f"#{one.ordinal}" for one in entry.imports))
            for entry in getattr(pe, table, [])
        ]

    named = (
        [one for one in pe.DIRECTORY_ENTRY_EXPORT.symbols if one.name] if hasattr(pe, "DIRECTORY_ENTRY_EXPORT") else []
    )
    return {
        "imports": dlls_of("DIRECTORY_ENTRY_IMPORT"),
        "delayed": dlls_of("DIRECTORY_ENTRY_DELAY_IMPORT"),
        "names": [one.name.decode() for one in named],
        "forwarders": [(one.name.decode(), one.forwarder.decode()) for one in named if one.forwarder],
        "sections": [(one.Name.rstrip(b"\0").decode(), one.VirtualAddress, one.SizeOfRawData) for one in pe.sections],
        "size": pe.OPTIONAL_HEADER.SizeOfImage,
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_facts_agree_with_pefile(name: str) -> None:
    ours = read(name)
    assert by_pefile(path_of(name)) == {
        "imports": [(dll.name, dll.functions) for dll in ours.imports],
        "delayed": [(dll.name, dll.functions) for dll in ours.delay_imports],
        "names": list(ours.exports.names) if ours.exports else [],
        "forwarders": list(ours.exports.forwarders) if ours.exports else [],
        "sections": [(one.name, one.address, one.file_size) for one in ours.sections],
        "size": ours.header.image_size,
    }


@pytest.mark.parametrize(
    ("name", "directory", "wanted", "exported"),
    [
        pytest.param("program.exe", 1, ("api.dll", "dep6.dll"), [], id="imports"),
        pytest.param("api7.dll", 13, ("dep6.dll",), ["api_far", "api_one"], id="delay-loaded imports"),
        pytest.param("api7.dll", 0, ("dep6.dll",), ["api_far", "api_one"], id="exports"),
    ],
)
def test_tables_of_size_0_are_read_as_in_the_loader_and_pefile(
    name: str, directory: int, wanted: tuple[str, ...], exported: list[str], tmp_path: Path
) -> None:
    path, data = tmp_path / name, bytearray(path_of(name).read_bytes())
    struct.pack_into("<I", data, read(name).header.optional_offset + 112 + 8 * directory + 4, 0)
    path.write_bytes(data)
    ours, theirs = read_pe(data, name=name), by_pefile(path)
    assert (ours.wanted, list(ours.exports.names) if ours.exports else []) == (wanted, exported)
    assert [(dll.name, dll.functions) for dll in ours.imports] == theirs["imports"]
    assert [(dll.name, dll.functions) for dll in ours.delay_imports] == theirs["delayed"]
    assert exported == theirs["names"]


@pytest.mark.parametrize("name", NAMES)
def test_the_facts_agree_with_lief(name: str) -> None:
    ours, theirs = read(name), lief.PE.parse(str(path_of(name)))
    assert theirs is not None
    assert [dll.name for dll in theirs.imports] == [dll.name for dll in ours.imports]
    assert [dll.name for dll in theirs.delay_imports] == [dll.name for dll in ours.delay_imports]
    assert [(one.name, one.virtual_address) for one in theirs.sections] == [
        (one.name, one.address) for one in ours.sections
    ]
    export = theirs.get_export()
    assert (export.name if export else None) == (ours.exports.dll if ours.exports else None)


@pytest.mark.parametrize("name", NAMES)
def test_the_facts_agree_with_llvm(name: str, run_tool: RunTool) -> None:
    ours = read(name)
    printed = run_tool(["llvm-readobj-16", "--coff-imports", "--coff-exports", "--file-headers", path_of(name)])
    parts = re.findall(r"(DelayImport|Import|Export) \{(.*?)\n\}", printed, re.DOTALL)
    names = {kind: re.findall(r"^  Name: (\S+)$", "\n".join(body for k, body in parts if k == kind), re.MULTILINE)
             for kind in ("Import", "DelayImport", "Export")}  # fmt: skip
    assert names["Import"] == [dll.name for dll in ours.imports]
    assert names["DelayImport"] == [dll.name for dll in ours.delay_imports]
    assert names["Export"] == (list(ours.exports.names) if ours.exports else [])
    assert f"SizeOfImage: {ours.header.image_size}\n" in printed
