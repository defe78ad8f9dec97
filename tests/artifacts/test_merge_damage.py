"""Builds with a damaged file are merged, or refused with nothing written."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocwheel.artifacts.merge import MergeOptions, opened_merge, write_merge
from rocwheel.core.errors import RocwheelError
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from tests.support.damage import damaged
from tests.support.example_counts import examples
from tests.support.fat_libraries import build_fat_library, make_bundle

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

TARGETS = {"a": "gfx906", "b": "gfx1030"}
TABLE = "lib/hipblaslt/library/hipblasltExtOpLibrary.dat"
MANY = settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two builds, ``a`` and ``b``: a split library, its archive, a table, a kernel file."""
    folder = tmp_path_factory.mktemp("shards")
    for shard, target in TARGETS.items():
        build_fat_library(folder / f"{shard}-tree/lib/libx.so", [make_bundle(0, target)])
        split_tree(folder / f"{shard}-tree", folder / f"{shard}-parts", SplitOrder(choice=SplitChoice()))
        for part, artifact in (("host", "generic"), (target, target)):
            made = folder / shard / f"blas_lib_{artifact}"
            shutil.copytree(folder / f"{shard}-parts" / part, made / "stage")
            (made / "artifact_manifest.txt").write_text("stage\n")
        table = folder / shard / "blas_lib_generic/stage" / TABLE
        table.parent.mkdir(parents=True)
        table.write_bytes(msgspec.msgpack.encode({target: [1]}))
    return folder


@pytest.mark.deep
@MANY
@given(st.data())
def test_builds_with_a_damaged_file_are_merged_or_refused(shards: Path, data: st.DataObject) -> None:
    work = shards / "work"
    shutil.rmtree(work, ignore_errors=True)
    for shard in TARGETS:
        shutil.copytree(shards / shard, work / shard)
    files = sorted(path for shard in TARGETS for path in (work / shard).rglob("*") if path.is_file())
    path = data.draw(st.sampled_from(files))
    path.write_bytes(data.draw(damaged([path.read_bytes()])))
    with suppress(RocwheelError):
        with opened_merge([work / "a", work / "b"], MergeOptions(str(work / "a"))) as plan:
            write_merge(plan, work / "out")
        assert (work / "out/blas_lib_generic").is_dir()
        return
    assert sorted(made.name for made in work.iterdir()) == ["a", "b"]
