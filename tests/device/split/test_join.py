"""Tests of `rocwheel.device.split.joining`."""

from __future__ import annotations

import random
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.compressed import compress_bundle
from rocwheel.binary.bundles.plain import BundlePart, write_offload_bundle
from rocwheel.core.reading import join_data
from rocwheel.device.split.join_tree import join_tree
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from tests.support.fat_libraries import build_fat_library

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
def test_code_of_all_targets_is_never_in_memory_together(tmp_path: Path, is_compressed: bool) -> None:
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
