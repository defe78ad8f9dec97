"""Build outputs found by the ends of their paths."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rocwheel.core.errors import InputError
from rocwheel.frameworks.wheel.inputs import InputFiles, read_runfiles_manifest


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("pjrt/plugin.so", "rocm/_a.so", "rocm/_b.so", "other/_a.so"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def test_a_file_is_found_below_a_folder_by_the_end_of_its_path(tree: Path) -> None:
    assert InputFiles([tree]).find("pjrt/plugin.so") == {"plugin.so": tree / "pjrt/plugin.so"}
    assert InputFiles([tree]).find("plugin.so") == {"plugin.so": tree / "pjrt/plugin.so"}


def test_patterns_give_every_file(tree: Path) -> None:
    assert list(InputFiles([tree]).find("rocm/_*.so")) == ["_a.so", "_b.so"]


def test_a_file_given_by_itself_wins_over_folders(tree: Path) -> None:
    given = tree / "rocm/_a.so"
    assert InputFiles([tree / "other", given]).find("_a.so") == {"_a.so": given}


def test_the_manifest_is_asked_last() -> None:
    inputs = InputFiles([], {"main/pjrt/plugin.so": Path("/x/plugin.so")})
    assert inputs.find("pjrt/plugin.so") == {"plugin.so": Path("/x/plugin.so")}


def test_links_to_one_file_are_one_input(tree: Path) -> None:
    (tree / "linked").symlink_to(tree / "rocm")
    (tree / "again").mkdir()
    (tree / "again/_b.so").symlink_to(tree / "rocm/_b.so")
    assert list(InputFiles([tree]).find("_b.so")) == ["_b.so"]


def test_a_missing_file_is_named_with_the_places_searched(tree: Path) -> None:
    with pytest.raises(InputError) as caught:
        InputFiles([tree]).find("x.so")
    assert str(caught.value) == (
        f"x.so: is not among the inputs ({tree}). Build the target that makes it, or give its folder with --src."
    )


def test_two_files_for_one_name_are_refused(tree: Path) -> None:
    with pytest.raises(InputError) as caught:
        InputFiles([tree]).find("_a.so")
    assert str(caught.value) == (
        f"_a.so: fits several inputs: {tree}/other/_a.so and {tree}/rocm/_a.so; expected one file. "
        "Give more of the path in the description."
    )


def test_a_source_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        InputFiles([tmp_path / "bazel-bin"])
    assert str(caught.value) == f"{tmp_path}/bazel-bin: does not exist. Build it, or correct --src."


def test_a_runfiles_manifest_is_read_with_its_escapes(tmp_path: Path) -> None:
    path = tmp_path / "MANIFEST"
    path.write_text("main/a.so /out/a.so\n main/b\\sc.so /out/b c\\nd\\b.so\nmain/__init__.py \n")
    assert read_runfiles_manifest(path) == {"main/a.so": Path("/out/a.so"), "main/b c.so": Path("/out/b c\nd\\.so")}


def test_another_file_is_not_a_manifest(tmp_path: Path) -> None:
    path = tmp_path / "MANIFEST"
    path.write_text("main/a.so /out/a.so\nnonsense\n")
    with pytest.raises(InputError) as caught:
        read_runfiles_manifest(path)
    assert str(caught.value) == (
        f"{path}: line 2 is 'nonsense'; expected a name, a space and a path. Is it Bazel's MANIFEST?"
    )


def test_files_of_one_name_that_a_pattern_fits_are_refused(tree: Path) -> None:
    with pytest.raises(InputError) as caught:
        InputFiles([tree]).find("_*.so")
    assert str(caught.value) == (
        f"_*.so: fits several inputs of one name: {tree}/other/_a.so and {tree}/rocm/_a.so; expected one file. "
        "Give more of the path in the description."
    )


def test_texts_of_one_name_keep_their_folders(tree: Path) -> None:
    assert InputFiles([tree]).texts("*/_a.so") == {
        "other/_a.so": tree / "other/_a.so",
        "rocm/_a.so": tree / "rocm/_a.so",
    }
    assert InputFiles([tree]).texts("plugin.*") == {"plugin.so": tree / "pjrt/plugin.so"}


def test_a_pipe_is_no_runfiles_manifest(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="it is not a regular file"):
        read_runfiles_manifest(tmp_path / "pipe")
