"""Tests of `rocwheel.report.savings`."""

from __future__ import annotations

import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.bundles.compressed import compress_bundle
from rocwheel.binary.bundles.plain import BundlePart, write_offload_bundle
from rocwheel.binary.kpack.archive import Scheme
from rocwheel.binary.kpack.write import compress_kernel
from rocwheel.core.reading import FileRange
from rocwheel.device.device_facts import list_device_code
from rocwheel.diff.sides import Item
from rocwheel.report.savings import MeasuredCode, divide, find_savings, measure_code
from rocwheel.report.values import Action, FileFacts, Part, Saving
from tests.support.bundles import bundle_of
from tests.support.fat_libraries import build_fat_library, code_of, make_bundle
from tests.support.libraries import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


TEXT = FileFacts(package=0, component="doc", path="a.txt", size=10, packed=4)
KERNELS = FileFacts(
    package=0, component="kernels", path="k_gfx906.dat", size=100, packed=50, parts=(Part("gfx906", 100, 50),)
)
LIBRARY = FileFacts(
    package=0,
    component="lib",
    path="lib.so",
    size=1000,
    packed=500,
    parts=(Part("", 200, 100), Part("gfx90a:xnack+", 400, 200), Part("gfx906", 400, 200)),
)
CODE = MeasuredCode(
    host=200, host_packed=60, bundles=800, compressed=300, archived={"gfx90a:xnack+": 90, "gfx906": 110}, measured=800
)


def test_each_saving_is_the_size_that_remains_of_the_same_total() -> None:
    """Of 600 packed bytes, 46 are those of headers: these stay."""
    gpus = ["gfx906", "gfx90a"]
    found = find_savings([TEXT, KERNELS, LIBRARY], {2: CODE}, gpus, packed=600, is_estimated=False)
    assert found is not None
    assert (found.measured, found.of, found.is_estimated) == (800, 800, False)
    assert found.rows == (
        Saving(Action.COMPRESS, "", 1110, 10 + 100 + 500, 600, 46 + 4 + 50 + 360),
        Saving(Action.SPLIT, "gfx906", 1110, 10 + 100 + 310, 600, 46 + 4 + 50 + 170),
        Saving(Action.PRUNE, "gfx906", 1110, 10 + 100 + 600, 600, 46 + 4 + 50 + 60 + 220),
        Saving(Action.SPLIT, "gfx90a", 1110, 10 + 0 + 290, 600, 46 + 4 + 0 + 150),
        Saving(Action.PRUNE, "gfx90a", 1110, 10 + 0 + 600, 600, 46 + 4 + 0 + 60 + 220),
    )


def test_generic_code_is_kept_for_the_gpus_it_covers() -> None:
    file = FileFacts(
        package=0, component="lib", path="a", size=30, parts=(Part("gfx11-generic", 20), Part("gfx906", 10))
    )
    found = find_savings([file], {}, ["gfx1100", "gfx906"], packed=None, is_estimated=True)
    assert found is not None
    assert found.rows == (
        Saving(Action.PRUNE, "gfx1100", 30, 20, None, None),
        Saving(Action.PRUNE, "gfx906", 30, 10, None, None),
    )


def test_there_is_nothing_to_save_without_device_code() -> None:
    assert find_savings([TEXT], {}, [], packed=4, is_estimated=False) is None


def test_an_action_that_packs_worse_counts_as_a_loss() -> None:
    worse = MeasuredCode(host=200, host_packed=450, bundles=800, compressed=300, archived={}, measured=800)
    found = find_savings([LIBRARY], {0: worse}, [], packed=500, is_estimated=False)
    assert found is not None
    assert found.rows == (Saving(Action.COMPRESS, "", 1000, 500, 500, 750),)


def measured(path: Path, *, estimate: bool = False) -> MeasuredCode | None:
    """Return what is measured of a file."""
    item = Item(path=path.name, source=str(path), size=path.stat().st_size, content=FileRange.whole(path))
    with ThreadPoolExecutor(2) as executor:
        return measure_code(item, executor, estimate=estimate)


@needs_compiler
def test_the_saving_of_compression_matches_the_measurement(run: Run, tmp_path: Path) -> None:
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


def test_compressed_bundles_are_unchanged(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.co").write_bytes(make_bundle(0, "gfx906 gfx90a"))
    assert run("device", "compress", tmp_path / "a.co", "-o", tmp_path / "b.co").status == 0
    found = measured(tmp_path / "b.co")
    assert found is not None
    assert found.compressed == found.bundles == (tmp_path / "b.co").stat().st_size


@needs_compiler
def test_an_estimate_of_a_few_bytes_equals_the_measurement(tmp_path: Path) -> None:
    library = build_fat_library(tmp_path / "libx.so", [make_bundle(0, "gfx906")])
    assert measured(library, estimate=True) == measured(library)


@needs_compiler
def test_an_estimate_samples_some_code_and_counts_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = build_fat_library(tmp_path / "libx.so", [make_bundle(unit, "gfx906 gfx90a") for unit in range(8)])
    real = measured(library)
    monkeypatch.setattr("rocwheel.report.savings._SAMPLED", library.stat().st_size // 4)
    found = measured(library, estimate=True)
    assert real is not None
    assert found is not None
    assert found.measured < real.measured
    assert found.compressed == pytest.approx(real.compressed, rel=0.05)
    assert found.archived["gfx906"] == pytest.approx(real.archived["gfx906"], rel=0.05)


def test_the_code_of_a_compressed_bundle_is_measured_as_archived_and_not_kept_in_memory(tmp_path: Path) -> None:
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
def test_files_without_readable_bundles_are_left_out(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "file").write_bytes(data)
    assert measured(tmp_path / "file") is None


@pytest.mark.parametrize(
    ("whole", "weights", "parts"),
    [(10, [1, 1], [5, 5]), (10, [2, 1], [6, 4]), (1, [1, 1, 1], [0, 0, 1]), (7, [0, 0], [3, 4]), (7, [], [])],
)
def test_parts_are_proportional(whole: int, weights: list[int], parts: list[int]) -> None:
    assert divide(whole, weights) == parts


@given(st.integers(0, 1 << 50), st.lists(st.integers(0, 1 << 50), min_size=1))
def test_parts_add_up_to_the_whole_and_are_rounded_by_at_most_one(whole: int, weights: list[int]) -> None:
    parts = divide(whole, weights)
    assert sum(parts) == whole
    if total := sum(weights):
        assert all(abs(part * total - whole * weight) <= total for part, weight in zip(parts, weights, strict=True))
