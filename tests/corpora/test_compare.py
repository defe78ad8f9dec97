"""What ``make corpus`` compares, on files that are here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.places import ELF_FIXTURES, FIXTURES
from trials.corpora import compare as comparing
from trials.corpora.compare import compare, show

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _tools(require_tool: Callable[[str, str], None]) -> None:
    require_tool("readelf", "binutils")
    try:
        comparing.llvm_readobj()
    except FileNotFoundError as e:
        pytest.skip(str(e))


@pytest.mark.parametrize("name", ["api7.dll", "dep6.dll", "program.exe"])
def test_other_tools_read_dlls_the_same_way(name: str) -> None:
    assert compare("pe", FIXTURES / "pe" / name, name) == []


@pytest.mark.parametrize("name", ["libanswer.so.1", "libmold.so", "program-pie", "static", "library.o", "gfx906.co"])
def test_other_tools_read_elf_files_the_same_way(name: str) -> None:
    assert compare("elf", ELF_FIXTURES / name, name) == []


@pytest.mark.parametrize(
    ("kind", "name", "fact", "tools"),
    [
        ("pe", "program.exe", "imports", ["LIEF", "llvm-readobj", "pefile"]),
        ("pe", "program.exe", "sections", ["LIEF", "llvm-readobj", "pefile"]),
        ("pe", "api7.dll", "exports", ["LIEF", "llvm-readobj", "pefile"]),
        ("pe", "api7.dll", "version", ["LIEF", "pefile"]),
        ("elf", "libanswer.so.1", "sections", ["llvm-readobj", "pyelftools"]),
        ("elf", "libanswer.so.1", "RUNPATH", ["pyelftools", "readelf"]),
        ("elf", "libanswer.so.1", "definitions", ["readelf"]),
    ],
)
def test_a_wrong_fact_is_detected_by_every_tool_that_reports_it(
    kind: str, name: str, fact: str, tools: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = comparing._OURS[kind]

    def lie(path: Path) -> dict[str, object]:
        return read(path) | {fact: ["wrong"]}

    monkeypatch.setitem(comparing._OURS, kind, lie)
    found = compare(kind, next(FIXTURES.glob(f"*/{name}")), name)
    assert sorted(one.tool for one in found) == tools
    assert {one.fact for one in found} == {fact}


def test_a_refused_file_is_reported_as_a_difference(tmp_path: Path) -> None:
    (tmp_path / "a.dll").write_bytes(b"MZ")
    (found,) = compare("pe", tmp_path / "a.dll", "a.dll")
    assert (found.tool, found.fact) == ("rocwheel", "refused")
    assert found.text.startswith("FILE: ")


def test_items_on_only_one_side_are_shown() -> None:
    assert show(["a", "b"], ["b", "c"]) == "2 and 2; only ours: ['a']; only theirs: ['c']"
    assert show(1, 2) == "1 and 2"
