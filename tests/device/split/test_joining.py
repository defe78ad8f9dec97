"""Tests of `rocwheel.device.split.joining`."""

from __future__ import annotations

import random
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.compressed import compress_bundle
from rocwheel.binary.bundles.plain import BundlePart, write_offload_bundle
from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.core.errors import InputError
from rocwheel.core.reading import join_data
from rocwheel.device.split.join_tree import join_tree
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.units import BundleUnit
from tests.support.fat_libraries import build_fat_library, lay_over, make_bundle, require_same_code, two_units
from tests.support.kpack_files import make_kpack

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow

SIZE = 24 << 20
TARGETS = ("gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100")


def bundle() -> bytes:
    code = memoryview(random.Random(0).randbytes(SIZE))
    return join_data(
        write_offload_bundle([BundlePart(f"hipv4-amdgcn-amd-amdhsa--{name}", (code,)) for name in TARGETS])
    )


@pytest.mark.parametrize("is_compressed", [False, True])
def test_code_of_all_targets_is_never_in_memory_at_once(tmp_path: Path, is_compressed: bool) -> None:
    whole = bundle()
    content = compress_bundle([memoryview(whole)], version=3, level=1) if is_compressed else whole
    library = build_fat_library(tmp_path / "libx.so", [content])
    split_tree(library, tmp_path / "out", SplitOrder(choice=SplitChoice()))
    devices = [tmp_path / "out" / name for name in TARGETS]
    tracemalloc.start()
    try:
        join_tree(tmp_path / "out/host", devices, tmp_path / "fat")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < SIZE
    if not is_compressed:
        assert whole in (tmp_path / "fat/libx.so").read_bytes()


@pytest.fixture
def shifted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a tree as AMD's tool makes it where the first unit lacks gfx1030: the archive has the second as 0."""
    first, second = two_units()
    build_fat_library(tmp_path / "fat/lib/libx.so", [make_bundle(unit, "gfx906 gfx1030") for unit in range(2)])
    with monkeypatch.context() as patched:
        patched.setattr(BundleUnit, "spellings", ())
        split_tree(tmp_path / "fat", tmp_path / "out", SplitOrder(choice=SplitChoice()))
    tree = lay_over(tmp_path / "out", tmp_path / "tree")
    archives = {
        "gfx906": {("lib/libx.so", 0, "gfx906"): first["gfx906"], ("lib/libx.so", 1, "gfx906"): second["gfx906"]},
        "gfx1030": {("lib/libx.so", 0, "gfx1030"): second["gfx1030"]},
    }
    for target, kernels in archives.items():
        (tree / f".kpack/libx.so_{target}.kpack").write_bytes(make_kpack(kernels))
    return tree


def right_code() -> list[dict[str, bytes]]:
    first, second = two_units()
    return [{"gfx906": first["gfx906"]}, {target: second[target] for target in ("gfx906", "gfx1030")}]


def test_a_unit_with_a_wrong_index_is_reported_and_the_library_is_not_changed(shifted: Path, tmp_path: Path) -> None:
    report = split_tree(shifted, tmp_path / "again", SplitOrder(choice=SplitChoice()))
    assert report.warnings == (
        (
            f"{shifted}/lib/libx.so: {shifted}/.kpack/libx.so_gfx1030.kpack lacks 1 unit (1): if it lists a GPU, "
            "runtimes up to 7.14 don't search any other archives and reject every GPU; later runtimes do the same "
            "unless another archive has the units; other units have wrong indices (0 should be 1)"
        ),
    )
    assert (tmp_path / "again/host/lib/libx.so").read_bytes() == (shifted / "lib/libx.so").read_bytes()


def test_a_mended_library_provides_each_gpu_with_its_code(shifted: Path, tmp_path: Path) -> None:
    report = split_tree(shifted, tmp_path / "again", SplitOrder(choice=SplitChoice(), mend=True))
    made = lay_over(tmp_path / "again", tmp_path / "made")
    assert (report.mended, report.warnings) == (("lib/libx.so",), ())
    assert require_same_code(made / "lib/libx.so", right_code()) > 0


def test_joining_corrects_wrong_unit_indices(shifted: Path, tmp_path: Path) -> None:
    report = join_tree(shifted, [], tmp_path / "joined")
    assert len(report.warnings) == 1
    data = memoryview((tmp_path / "joined/lib/libx.so").read_bytes())
    fat = read_fat_binary(data, name="libx.so")
    assert fat is not None
    targets = [[str(target) for target in bundle.targets] for bundle in fat.iter_bundles(data)]
    assert targets == [["gfx906"], ["gfx1030", "gfx906"]]


def test_units_that_cannot_be_identified_by_kernels_are_not_mended(shifted: Path, tmp_path: Path) -> None:
    (shifted / ".kpack/libx.so_gfx906.kpack").unlink()
    with pytest.raises(InputError, match=r"lib/libx\.so: units are missing from .*/\.kpack/libx\.so_gfx1030\.kpack"):
        split_tree(shifted, tmp_path / "again", SplitOrder(choice=SplitChoice(), mend=True))
    assert not (tmp_path / "again").exists()


def test_code_of_a_mended_library_is_removed_from_shared_archives(shifted: Path, tmp_path: Path) -> None:
    first, second = two_units()
    archive = shifted / ".kpack/libx.so_gfx906.kpack"
    own = {("lib/libx.so", unit, "gfx906"): code["gfx906"] for unit, code in enumerate((first, second))}
    others = {("lib/liby.so", 0, "gfx906"): first["gfx906"]}
    archive.rename(shifted / ".kpack/stale_gfx906.kpack")
    archive.write_bytes(make_kpack({**own, **others}))
    (archive.parent / "more_gfx906.kpack").write_bytes(make_kpack(others))
    report = split_tree(shifted, tmp_path / "again", SplitOrder(choice=SplitChoice(archives="kept"), mend=True))
    assert report.mended == ("lib/libx.so",)
    folder = tmp_path / "again/gfx906/.kpack"
    assert sorted(path.name for path in folder.iterdir()) == ["libx.so_gfx906.kpack", "more_gfx906.kpack"]
    assert (folder / "libx.so_gfx906.kpack").read_bytes() == make_kpack(others)
    assert (folder / "more_gfx906.kpack").read_bytes() == make_kpack(others)
