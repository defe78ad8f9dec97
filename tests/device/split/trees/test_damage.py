"""Damaged libraries and archives never give a traceback or half a folder."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocwheel.core.errors import RocwheelError
from rocwheel.device.split.join_tree import join_tree
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from tests.support.damage import damaged
from tests.support.example_counts import examples
from tests.support.fat_libraries import build_fat_library, make_bundle

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

MANY = settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a tree and what it was split into."""
    folder = tmp_path_factory.mktemp("damage")
    bundles = [make_bundle(0, "gfx906 gfx90a"), make_bundle(1, "gfx906")]
    build_fat_library(folder / "tree/libx.so", bundles)
    split_tree(folder / "tree", folder / "out", SplitOrder(choice=SplitChoice()))
    return folder


@MANY
@given(st.data())
def test_a_damaged_library_is_split_or_refused(trees: Path, data: st.DataObject) -> None:
    work = trees / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(trees / "tree", work / "tree")
    (work / "tree/libx.so").write_bytes(data.draw(damaged([(trees / "tree/libx.so").read_bytes()])))
    with suppress(RocwheelError):
        split_tree(work / "tree", work / "made", SplitOrder(choice=SplitChoice()))
        assert (work / "made/host/libx.so").exists()
        return
    assert [path.name for path in work.iterdir()] == ["tree"]


@MANY
@given(st.data())
def test_damaged_host_files_and_archives_are_joined_or_refused(trees: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(["host/libx.so", "gfx906/.kpack/libx.so_gfx906.kpack"]))
    work = trees / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(trees / "out", work / "out")
    (work / "out" / path).write_bytes(data.draw(damaged([(trees / "out" / path).read_bytes()])))
    with suppress(RocwheelError):
        join_tree(work / "out/host", [work / "out/gfx906", work / "out/gfx90a"], work / "made")
        return
    assert [path.name for path in work.iterdir()] == ["out"]
