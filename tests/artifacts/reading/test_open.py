"""Reading all artifacts of a folder at once."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from rocwheel.artifacts.reading.open import open_artifacts
from rocwheel.core.errors import ProblemsError

MakeArtifact = Callable[..., Path]
MakeArchive = Callable[..., Path]
MakeTar = Callable[[Iterable[tarfile.TarInfo]], bytes]


class Recorder:
    """A progress that remembers what was reported to it."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int]] = []
        self.done = 0
        self.ended = 0

    def begin(self, label: str, total: int) -> None:
        """Note a step."""
        self.steps.append((label, total))

    def advance(self, amount: int) -> None:
        """Add to the sum."""
        self.done += amount

    def end(self) -> None:
        """Count the ends."""
        self.ended += 1


def test_folders_and_archives_are_read_together(
    tmp_path: Path, make_artifact: MakeArtifact, make_archive: MakeArchive, make_tar: MakeTar
) -> None:
    make_artifact("rand_lib_generic", {"stage/a": b""})
    tar = make_tar([tarfile.TarInfo("artifact_manifest.txt"), tarfile.TarInfo("stage/b")])
    make_archive("blas_lib_generic.tar.xz", tar)
    with open_artifacts(tmp_path / "artifacts") as artifacts:
        assert [(str(artifact.name), artifact.members[-1].path) for artifact in artifacts] == [
            ("blas_lib_generic", "stage/b"),
            ("rand_lib_generic", "stage/a"),
        ]


def test_every_problem_of_every_artifact_is_reported_at_once(
    tmp_path: Path, make_artifact: MakeArtifact, make_archive: MakeArchive
) -> None:
    make_artifact("fine_lib_generic", {"stage/a": b""})
    make_artifact("bad_name_lib_generic", {})
    make_artifact("none_lib_generic", {}, manifest=None)
    make_artifact("two_lib_generic", {"x/a": b"", "y/b": b""})
    make_archive("torn_lib_generic.tar.xz", b"").write_bytes(b"")
    with pytest.raises(ProblemsError) as caught, open_artifacts(tmp_path / "artifacts"):
        pass
    folder = tmp_path / "artifacts"
    assert [str(problem).partition(": ")[0] for problem in caught.value.problems] == [
        f"{folder}/bad_name_lib_generic",
        f"{folder}/none_lib_generic",
        f"{folder}/torn_lib_generic.tar.xz",
        f"{folder}/two_lib_generic/x/a",
        f"{folder}/two_lib_generic/y/b",
    ]
    assert caught.value.exit_status == 2


def test_only_the_artifacts_named_are_read(tmp_path: Path, make_artifact: MakeArtifact) -> None:
    make_artifact("a_lib_generic", {})
    make_artifact("b_lib_generic", {}, manifest=None)
    with open_artifacts(tmp_path / "artifacts", ["a_lib_generic"]) as artifacts:
        assert [str(artifact.name) for artifact in artifacts] == ["a_lib_generic"]


def test_names_that_are_not_there_are_reported(tmp_path: Path, make_artifact: MakeArtifact) -> None:
    make_artifact("a_lib_generic", {})
    with (
        pytest.raises(ProblemsError) as caught,
        open_artifacts(tmp_path / "artifacts", ["y_lib_x", "a_lib_generic", "z"]),
    ):
        pass
    folder = tmp_path / "artifacts"
    assert [str(problem) for problem in caught.value.problems] == [
        f"{folder}: holds no artifact y_lib_x",
        f"{folder}: holds no artifact z",
    ]


def test_progress_reports_the_compressed_bytes(
    tmp_path: Path, make_archive: MakeArchive, make_artifact: MakeArtifact, make_tar: MakeTar
) -> None:
    make_artifact("a_lib_generic", {"stage/a": b"not counted"})
    tar = make_tar([tarfile.TarInfo("artifact_manifest.txt")])
    sizes = [make_archive(f"{name}_lib_generic.tar.zst", tar).stat().st_size for name in "bc"]
    recorder = Recorder()
    with open_artifacts(tmp_path / "artifacts", progress=recorder):
        assert recorder.steps == [("reading artifacts", sum(sizes))]
        assert recorder.done == sum(sizes)
        assert recorder.ended == 1


def test_temporary_files_are_closed_with_the_block(
    tmp_path: Path, make_archive: MakeArchive, make_tar: MakeTar
) -> None:
    make_archive(
        "b_lib_generic.tar.zst", make_tar([tarfile.TarInfo("artifact_manifest.txt"), tarfile.TarInfo("stage/x")])
    )
    with open_artifacts(tmp_path / "artifacts") as (artifact,):
        source = artifact.members[0].source
        assert source is not None
        assert Path(source.path).exists()
    assert not Path(source.path).exists()
