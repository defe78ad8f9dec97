"""Tests of `rocwheel.build.layout.facts`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.catalog import open_catalog
from rocwheel.build.layout.facts import read_facts
from rocwheel.core.errors import RocwheelError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "data", "mode", "expected"),
    [
        pytest.param("bin/smi", b"#!/bin/sh\n", 0o755, True, id="script"),
        pytest.param("bin/tool", b"\x7fELF\1\1\1", 0o755, True, id="program of 32 bits"),
        pytest.param("bin/smi", b"#!/bin/sh\n", 0o644, False, id="script that may not be run"),
        pytest.param("share/table.txt", b"1 2 3\n", 0o755, False, id="data marked executable"),
        pytest.param("share/empty", b"", 0o755, False, id="nothing marked executable"),
        pytest.param("lib/libclang_rt.so", b"\x7fELF\1\1\1".ljust(64), 0o755, False, id="library of 32 bits"),
    ],
)
def test_only_what_the_kernel_can_run_is_a_program(
    tmp_path: Path, name: str, data: bytes, mode: int, *, expected: bool
) -> None:
    artifact = tmp_path / "base_run_generic"
    path = artifact / "base/stage" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    path.chmod(mode)
    (artifact / "artifact_manifest.txt").write_text("base/stage\n")
    with ThreadPoolExecutor(1) as executor, open_catalog(tmp_path) as catalog:
        facts = read_facts(catalog, executor)
        entry = next(entry for entry in catalog.entries if entry.path == name)
        assert facts.is_program(entry) is expected


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "is empty; expected a shared library"),
        (b"\x7fELF", "the ELF header would lie at 0x0 to 0x40, but the file ends at 0x4; expected a whole ELF file"),
    ],
)
def test_a_library_that_ends_before_its_code_is_refused(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / "base_lib_generic/base/stage/lib/libx.so.1"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    (tmp_path / "base_lib_generic/artifact_manifest.txt").write_text("base/stage\n")
    with ThreadPoolExecutor(1) as executor, open_catalog(tmp_path) as catalog:
        with pytest.raises(RocwheelError) as caught:
            read_facts(catalog, executor)
        assert found in str(caught.value)
