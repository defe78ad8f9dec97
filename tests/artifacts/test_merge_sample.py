"""The sample SDK, parted into shards and merged again."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.catalog import open_catalog
from rocwheel.artifacts.merge import MergeOptions, opened_merge, write_merge
from rocwheel.demo import SAMPLE_SDK

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def content(folder: Path) -> dict[tuple[str, str, str], bytes | str | None]:
    """Return each file and link of a folder of artifacts by name, component and path, whichever its target."""
    with open_catalog(folder) as catalog:
        return {
            (entry.artifact.name, entry.artifact.component, entry.path): entry.source.read()
            if entry.source
            else entry.link
            for entry in catalog.entries
            if entry.source or entry.link
        }


def test_merging_a_build_split_by_target_restores_the_original(tmp_path: Path) -> None:
    shards = [tmp_path / name for name in ("first", "second", "third")]
    for shard, target in zip(shards, ("gfx906", "gfx90a", "gfx1030"), strict=True):
        shard.mkdir()
        for archive in SAMPLE_SDK.glob("*.tar.*"):
            if "_generic" in archive.name or f"_{target}" in archive.name:
                shutil.copy(archive, shard)

    with opened_merge(shards, MergeOptions(str(shards[1]))) as plan:
        report = write_merge(plan, tmp_path / "out")

    assert content(tmp_path / "out") == content(SAMPLE_SDK)
    assert report.targets == ("gfx1030", "gfx906", "gfx90a")
    assert report.differences == ()
