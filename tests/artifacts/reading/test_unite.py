"""Artifacts of several folders as one set."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rocwheel.artifacts.catalog import open_catalog
from rocwheel.core.errors import InputError, ProblemsError

MakeArtifact = Callable[..., Path]


@pytest.fixture
def folders(tmp_path: Path, make_artifact: MakeArtifact) -> tuple[Path, Path]:
    """Return two folders with one and the same artifact."""
    make_artifact("base_lib_generic", {"stage/bin/tool": b"1"})
    shutil.copytree(tmp_path / "artifacts", tmp_path / "more")
    return tmp_path / "artifacts", tmp_path / "more"


def test_artifacts_of_all_folders_are_there_once_in_the_order_of_their_names(
    folders: tuple[Path, Path], make_artifact: MakeArtifact
) -> None:
    make_artifact("a_lib_generic", {"stage/lib/a": b"a"})
    shutil.move(folders[0] / "a_lib_generic", folders[1] / "a_lib_generic")
    with open_catalog(*folders) as catalog:
        assert [str(name) for name in catalog.artifacts] == ["a_lib_generic", "base_lib_generic"]
        assert [entry.path for entry in catalog.entries if entry.source] == ["bin/tool", "lib/a"]
        assert catalog.root == f"{folders[0]} and {folders[1]}"


def test_a_folder_given_twice_counts_once(folders: tuple[Path, Path]) -> None:
    with open_catalog(folders[0], folders[0]) as catalog:
        assert [str(name) for name in catalog.artifacts] == ["base_lib_generic"]
        assert catalog.root == str(folders[0])


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda stage: (stage / "bin/tool").write_bytes(b"2"), "stage/bin/tool"),
        (lambda stage: (stage / "bin/tool").write_bytes(b"11"), "stage/bin/tool"),
        (lambda stage: (stage / "bin/tool").chmod(0o755), "stage/bin/tool"),
        (lambda stage: (stage / "bin/also").symlink_to("tool"), "stage/bin/also"),
        (lambda stage: (stage.parent / "artifact_manifest.txt").write_text("stage\nother\n"), "their stage folders"),
    ],
    ids=["bytes", "size", "executable", "another member", "stages"],
)
def test_one_artifact_with_different_content_is_refused_with_both_places(
    folders: tuple[Path, Path], change: Callable[[Path], object], difference: str
) -> None:
    change(folders[1] / "base_lib_generic/stage")
    with pytest.raises(InputError) as caught, open_catalog(*folders):
        pass
    assert str(caught.value) == (
        f"{folders[0]}/base_lib_generic: is not the same artifact as {folders[1]}/base_lib_generic: "
        f"they differ in {difference}. Take one of them out of its folder, or leave a folder out."
    )


def test_a_mode_that_nobody_runs_a_file_by_is_no_difference(folders: tuple[Path, Path]) -> None:
    (folders[1] / "base_lib_generic/stage/bin/tool").chmod(0o600)
    (folders[1] / "base_lib_generic/stage/empty").mkdir()
    with open_catalog(*folders) as catalog:
        assert len(catalog.artifacts) == 1


def test_what_is_wrong_with_each_folder_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError) as caught, open_catalog(tmp_path / "one", tmp_path / "two"):
        pass
    assert "/one: " in str(caught.value)
    assert "/two: " in str(caught.value)
