"""Finding the artifacts of a folder."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from rocwheel.artifacts.model.names import ArtifactName
from rocwheel.artifacts.reading.discovery import StoredArtifact, find_archives, find_artifacts
from rocwheel.core.errors import InputError

MakeArtifact = Callable[..., Path]
MakeArchive = Callable[..., Path]
EXPECTED_NAME = (
    "is not an artifact name; expected {name}_{component}_{target} of letters, digits and '.+:~-', "
    "such as blas_lib_gfx942"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "artifacts"
    folder.mkdir()
    return folder


def test_folders_and_archives_are_found_in_the_order_of_their_names(
    folder: Path, make_artifact: MakeArtifact, make_archive: MakeArchive
) -> None:
    make_artifact("rand_lib_gfx90a:xnack+", {})
    make_archive("blas_lib_generic.tar.xz", b"")
    make_archive("blas_dev_generic.tar.zst", b"")
    found = find_artifacts(folder)
    assert found.artifacts == (
        StoredArtifact(ArtifactName("blas", "dev", "generic"), f"{folder}/blas_dev_generic.tar.zst", is_archive=True),
        StoredArtifact(ArtifactName("blas", "lib", "generic"), f"{folder}/blas_lib_generic.tar.xz", is_archive=True),
        StoredArtifact(
            ArtifactName("rand", "lib", "gfx90a:xnack+"), f"{folder}/rand_lib_gfx90a:xnack+", is_archive=False
        ),
    )
    assert found.problems == ()


def test_what_does_not_look_like_an_artifact_is_left_aside_with_a_debug_log(
    folder: Path, make_artifact: MakeArtifact, make_archive: MakeArchive, caplog: pytest.LogCaptureFixture
) -> None:
    make_artifact("blas_lib_generic", {})
    (folder / "notes").mkdir()
    (folder / "blas_lib_generic.tar.xz.sha256sum").write_text("")
    make_archive("sources.tar.xz", b"something else")
    make_artifact(".rand_lib_generic.x1y2", {})
    with caplog.at_level(logging.DEBUG, "rocwheel"):
        found = find_artifacts(folder)
    assert [str(artifact.name) for artifact in found.artifacts] == ["blas_lib_generic"]
    assert found.problems == ()
    assert caplog.messages == [
        f"{folder}/{name} does not look like an artifact: ignored"
        for name in (".rand_lib_generic.x1y2", "blas_lib_generic.tar.xz.sha256sum", "notes", "sources.tar.xz")
    ]


def test_a_folder_with_a_manifest_and_a_bad_name_is_a_problem(folder: Path, make_artifact: MakeArtifact) -> None:
    make_artifact("blas_lib", {})
    assert [str(problem) for problem in find_artifacts(folder).problems] == [f"{folder}/blas_lib: {EXPECTED_NAME}"]


def test_an_odd_name_is_a_problem_even_without_manifest(folder: Path, make_artifact: MakeArtifact) -> None:
    make_artifact("a b_lib_x'", {}, manifest=None)
    assert [str(problem) for problem in find_artifacts(folder).problems] == [f"{folder}/a b_lib_x': {EXPECTED_NAME}"]


def test_an_archive_with_a_manifest_and_a_bad_name_is_a_problem(folder: Path, make_archive: MakeArchive) -> None:
    make_archive("blas_lib.tar.zst", b"artifact_manifest.txt\0...")
    found = find_artifacts(folder)
    assert [str(problem) for problem in found.problems] == [f"{folder}/blas_lib.tar.zst: {EXPECTED_NAME}"]


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tgz", ".tar.bz2", ".zip"])
def test_an_artifact_archive_of_another_format_is_a_problem(folder: Path, suffix: str) -> None:
    (folder / f"blas_lib_generic{suffix}").write_bytes(b"")
    (problem,) = find_artifacts(folder).problems
    assert str(problem) == (
        f"{folder}/blas_lib_generic{suffix}: is not an artifact archive that can be read; "
        "expected .tar.xz or .tar.zst. Unpack it to a folder, or compress it with xz or zstd."
    )


def test_an_artifact_that_is_there_twice_is_a_problem(
    folder: Path, make_artifact: MakeArtifact, make_archive: MakeArchive
) -> None:
    make_artifact("blas_lib_generic", {})
    make_archive("blas_lib_generic.tar.xz", b"")
    make_archive("blas_lib_generic.tar.zst", b"")
    found = find_artifacts(folder)
    assert found.artifacts == ()
    (problem,) = found.problems
    assert str(problem) == (
        f"{folder}: one artifact is there several times: blas_lib_generic and blas_lib_generic.tar.xz and "
        "blas_lib_generic.tar.zst. Keep one of them."
    )


def test_a_folder_without_artifacts_is_refused(folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        find_artifacts(folder)
    assert str(caught.value) == (
        f"{folder}: holds no artifacts; expected folders or .tar.xz or .tar.zst archives named "
        "{name}_{component}_{target}. Is it the right folder?"
    )


def test_a_folder_that_is_missing_or_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, why, remedy in (
        ("missing", "No such file or directory", "Check that it exists and may be read."),
        ("file", "Not a directory", "Name a folder, not a file."),
    ):
        with pytest.raises(InputError) as caught:
            find_artifacts(tmp_path / name)
        expected = f"{tmp_path}/{name}: can't be read ({why}); expected a folder of artifacts. {remedy}"
        assert str(caught.value) == expected


def test_a_folder_given_as_an_archive_is_told_from_a_file(tmp_path: Path) -> None:
    (problem,) = find_archives([tmp_path]).problems
    assert str(problem) == (
        f"{tmp_path}: is not an artifact archive that can be read; expected .tar.xz or .tar.zst. "
        "Give the archives in it."
    )


def test_paths_given_as_archives_have_to_be_archives(tmp_path: Path) -> None:
    found = find_archives([tmp_path / "b_lib_x.tar.xz", tmp_path / "a_lib_x.tar.zst", tmp_path / "c_lib_x"])
    assert [str(artifact.name) for artifact in found.artifacts] == ["a_lib_x", "b_lib_x"]
    (problem,) = found.problems
    assert str(problem) == (
        f"{tmp_path}/c_lib_x: is not an artifact archive that can be read; expected .tar.xz or .tar.zst. "
        "Unpack it to a folder, or compress it with xz or zstd."
    )
