"""Fat libraries of several builds: split first, then merged, so that each GPU gets its code; not merged otherwise."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.merge import MergeOptions, opened_merge, write_merge
from rocwheel.core.errors import ProblemsError, RocwheelError
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from tests.support.fat_libraries import build_fat_library, code_of, make_bundle, require_same_code

if TYPE_CHECKING:
    from rocwheel.artifacts.shards import MergeReport

pytestmark = pytest.mark.slow

UNITS = 3


def fat_shard(folder: Path, targets: str) -> Path:
    """Make a build for ``targets`` whose library has its code inside."""
    stage = folder / "blas_lib_generic/stage"
    build_fat_library(stage / "lib/libx.so", [make_bundle(unit, targets) for unit in range(UNITS)])
    (stage.parent / "artifact_manifest.txt").write_text("stage\n")
    return folder


def split_shard(shard: Path, output: Path) -> Path:
    """Split the stage folder of a build's artifact, as the documentation says."""
    parts = shard.with_name(f"{shard.name}-parts")
    split_tree(shard / "blas_lib_generic/stage", parts, SplitOrder(choice=SplitChoice()))
    for part in parts.iterdir():
        artifact = output / f"blas_lib_{'generic' if part.name == 'host' else part.name}"
        shutil.copytree(part, artifact / "stage")
        (artifact / "artifact_manifest.txt").write_text("stage\n")
    return output


def merge(shards: list[Path], dest: Path) -> MergeReport:
    with opened_merge(shards, MergeOptions(str(shards[0]))) as plan:
        return write_merge(plan, dest)


def test_fat_libraries_for_different_gpus_must_be_split_before_merging(tmp_path: Path) -> None:
    shards = [fat_shard(tmp_path / "a", "gfx906"), fat_shard(tmp_path / "b", "gfx1030 gfx1100")]

    with pytest.raises((RocwheelError, ProblemsError)) as caught:
        merge(shards, tmp_path / "out")

    library = "blas_lib_generic/stage/lib/libx.so"
    assert str(caught.value).replace(f"{tmp_path}/", "") == (
        f"b/{library}: differs from a/{library} in its device code; expected host files without device "
        "code. First, split the stage folders of each build's artifacts with 'rocwheel "
        "device split', then merge the results."
    )
    assert not (tmp_path / "out").exists()


def test_merged_split_libraries_serve_the_gpus_of_all_builds(tmp_path: Path) -> None:
    targets = {"a": "gfx906", "b": "gfx1030 gfx1100"}
    shards = [split_shard(fat_shard(tmp_path / n, text), tmp_path / f"{n}-split") for n, text in targets.items()]

    report = merge(shards, tmp_path / "out")

    assert [(d.path, d.differs, d.outcome) for d in report.differences] == [
        ("lib/libx.so", "space of device code", "primary's")
    ]
    made = tmp_path / "made"
    for artifact in (tmp_path / "out").iterdir():
        shutil.copytree(artifact / "stage", made, dirs_exist_ok=True)
    everything = " ".join(targets.values()).split()
    codes = [{target: code_of(unit, target) for target in everything} for unit in range(UNITS)]
    assert require_same_code(made / "lib/libx.so", codes) > 0


Damage = Callable[[Path], object]


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:700]),
        lambda path: path.write_bytes(path.read_bytes()[:64]),
        lambda path: path.write_bytes(b""),
    ],
    ids=["cut off", "a header alone", "empty"],
)
def test_a_damaged_library_is_an_error_that_names_the_file(tmp_path: Path, damage: Damage) -> None:
    shards = [fat_shard(tmp_path / "a", "gfx906"), fat_shard(tmp_path / "b", "gfx906")]
    damage(tmp_path / "b/blas_lib_generic/stage/lib/libx.so")

    with pytest.raises(RocwheelError, match=r"b/blas_lib_generic/stage/lib/libx\.so"):
        merge(shards, tmp_path / "out")
    assert not (tmp_path / "out").exists()
