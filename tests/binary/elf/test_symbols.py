"""Tests of `rocwheel.binary.elf.symbols`."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from rocwheel.binary.elf.facts import read_elf_traits
from rocwheel.binary.elf.symbols import Linkage, SymbolReference

LIBRARIES = [Path("/lib/x86_64-linux-gnu") / name for name in ("libc.so.6", "libstdc++.so.6", "libz.so.1", "libm.so.6")]


@pytest.mark.parametrize("path", LIBRARIES, ids=lambda path: path.name)
@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf")
def test_symbols_agree_with_readelf(path: Path) -> None:
    if not path.exists():
        pytest.skip(f"needs {path}")
    linkage = read_elf_traits(path.read_bytes(), name=str(path)).linkage
    rows = subprocess.run(["readelf", "--dyn-syms", "--wide", path], capture_output=True, text=True, check=True)
    fields = [line.split() for line in rows.stdout.splitlines() if line.strip()[:1].isdigit()]
    strong = {row[7] for row in fields if row[6] == "UND" and row[4] == "GLOBAL"}
    defined = {row[7].partition("@")[0] for row in fields if row[6] != "UND" and row[4] in {"GLOBAL", "WEAK", "UNIQUE"}}
    assert set(map(str, linkage.references)) == strong
    assert {name.decode().partition("@")[0] for name in linkage.definitions} == defined


DEFINED = Linkage(frozenset({b"plain", b"new@@V2", b"old@V1"}), (b"V1", b"V2"))


@pytest.mark.parametrize(
    ("name", "version", "found"),
    [
        ("plain", "", True), ("plain", "V2", True), ("new", "", True), ("new", "V2", True), ("new", "V1", False),
        ("old", "V1", True), ("old", "", False), ("other", "", False),
    ],
)  # fmt: skip
def test_a_reference_is_matched_by_symbol_version(name: str, version: str, found: bool) -> None:
    assert DEFINED.defines(SymbolReference(name, version)) is found


def test_names_are_looked_up_quickly_in_a_library_with_thousands_of_versions() -> None:
    """Each reference without a version was looked for with each of 8,000, for milliseconds."""
    versions = tuple(b"V%d" % number for number in range(8_000))
    linkage = Linkage(frozenset({b"new@@V7999", b"old@V1", b"other@@X"}), versions)
    start = time.process_time()
    found = [name for name in ("new", "old", "other") if linkage.defines(SymbolReference(name))]
    assert not any(linkage.defines(SymbolReference(f"f{number}")) for number in range(5_000))
    assert found == ["new"]
    assert time.process_time() - start < 1
