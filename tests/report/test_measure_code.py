"""Tests of what compressing would save, against what it saves."""

from __future__ import annotations

import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.compressed import compress_bundle
from rocwheel.binary.bundles.plain import BundlePart, write_offload_bundle
from rocwheel.binary.kpack.archive import Scheme
from rocwheel.binary.kpack.write import compress_kernel
from rocwheel.core.reading import FileRange
from rocwheel.device.device_facts import list_device_code
from rocwheel.diff.sides import Item
from rocwheel.report.savings import MeasuredCode, measure_code
from tests.support.bundles import bundle_of
from tests.support.fat_libraries import build_fat_library, code_of, make_bundle
from tests.support.libraries import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


def measured(path: Path, *, estimate: bool = False) -> MeasuredCode | None:
    """Return what is measured of a file."""
    item = Item(path=path.name, source=str(path), size=path.stat().st_size, content=FileRange.whole(path))
    with ThreadPoolExecutor(2) as executor:
        return measure_code(item, executor, estimate=estimate)


@needs_compiler
def test_compressing_saves_what_was_measured(run: Run, tmp_path: Path) -> None:
    bundles = [make_bundle(unit, "gfx906 gfx90a gfx1100") for unit in range(3)]
    library = build_fat_library(tmp_path / "libx.so", bundles)
    found = measured(library)
    assert run("device", "compress", library, "-o", tmp_path / "out.so").status == 0
    real = list_device_code(tmp_path / "out.so")
    assert found is not None
    assert found.compressed == sum(bundle.size for bundle in real.bundles) < found.bundles
    assert found.bundles == found.measured == sum(map(len, bundles))
    assert found.host + found.bundles == library.stat().st_size
    assert sorted(found.archived) == ["gfx1100", "gfx906", "gfx90a"]
    assert 3 * 20 < found.archived["gfx906"] < 3 * len(code_of(0, "gfx906")) / 5


def test_bundles_that_are_compressed_stay_as_they_are(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.co").write_bytes(make_bundle(0, "gfx906 gfx90a"))
    assert run("device", "compress", tmp_path / "a.co", "-o", tmp_path / "b.co").status == 0
    found = measured(tmp_path / "b.co")
    assert found is not None
    assert found.compressed == found.bundles == (tmp_path / "b.co").stat().st_size


@needs_compiler
def test_an_estimate_of_few_bytes_is_the_measure(tmp_path: Path) -> None:
    library = build_fat_library(tmp_path / "libx.so", [make_bundle(0, "gfx906")])
    assert measured(library, estimate=True) == measured(library)


@needs_compiler
def test_an_estimate_looks_at_some_and_counts_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = build_fat_library(tmp_path / "libx.so", [make_bundle(unit, "gfx906 gfx90a") for unit in range(8)])
    real = measured(library)
    monkeypatch.setattr("rocwheel.report.savings._SAMPLED", library.stat().st_size // 4)
    found = measured(library, estimate=True)
    assert real is not None
    assert found is not None
    assert found.measured < real.measured
    assert found.compressed == pytest.approx(real.compressed, rel=0.05)
    assert found.archived["gfx906"] == pytest.approx(real.archived["gfx906"], rel=0.05)


def test_the_code_of_a_compressed_bundle_is_measured_as_archives_hold_it_and_not_held(tmp_path: Path) -> None:
    code = {"gfx906": bytes(64 << 20), "gfx90a": b"code" * 1000, "gfx1100": b""}
    parts = [BundlePart(f"hipv4-amdgcn-amd-amdhsa--{target}", (memoryview(data),)) for target, data in code.items()]
    (tmp_path / "a.co").write_bytes(compress_bundle(list(write_offload_bundle(parts)), version=3, level=3))
    tracemalloc.start()
    found = measured(tmp_path / "a.co")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found is not None
    expected = {target: len(compress_kernel(memoryview(data), Scheme.ZSTD)) for target, data in code.items()}
    assert found.archived == pytest.approx(expected, rel=0.01)
    assert most < 32 << 20


@pytest.mark.parametrize("data", [b"text", b"\x7fELF\2\1" + os.urandom(500), bundle_of("gfx906")[:40], b""])
def test_what_has_no_bundles_that_can_be_read_is_left_out(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "file").write_bytes(data)
    assert measured(tmp_path / "file") is None
