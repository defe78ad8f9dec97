"""Packing and unpacking several artifacts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rocwheel.artifacts.archives.write import ArchiveFormat
from rocwheel.artifacts.transfer import archive_artifacts, extract_archives
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.distributions.formats.source_date import SourceDate

MakeArtifact = Callable[..., Path]
MakeArchive = Callable[..., Path]


def _tree(root: Path) -> dict[str, tuple[int, bytes | str | None]]:
    found: dict[str, tuple[int, bytes | str | None]] = {}
    for path in root.rglob("*"):
        content = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(root))] = (path.lstat().st_mode, content)
    return found


@pytest.mark.parametrize("archive_format", ArchiveFormat)
def test_artifacts_survive_packing_and_unpacking(
    make_artifact: MakeArtifact, tmp_path: Path, archive_format: ArchiveFormat
) -> None:
    for number in range(6):
        tree = {f"stage/lib/lib{number}.so.1": bytes([number]) * 3000, f"stage/lib/lib{number}.so": f"lib{number}.so.1"}
        make_artifact(f"n{number}_lib_gfx90a:xnack+", tree)
    artifacts, archives = tmp_path / "artifacts", tmp_path / "archives"
    paths = archive_artifacts(artifacts, archives, (), archive_format, SourceDate())
    assert [path.name for path in paths] == [f"n{n}_lib_gfx90a:xnack+.tar.{archive_format.value}" for n in range(6)]
    extract_archives(paths, tmp_path / "again")
    assert _tree(tmp_path / "again") == _tree(artifacts)


def test_archives_are_packed_again_in_another_format_without_a_change(
    make_artifact: MakeArtifact, tmp_path: Path
) -> None:
    make_artifact("blas_lib_generic", {"stage/a": b"A", "stage/b": "a"})
    (first,) = archive_artifacts(tmp_path / "artifacts", tmp_path / "1", (), ArchiveFormat.ZST, SourceDate())
    archive_artifacts(first.parent, tmp_path / "2", (), ArchiveFormat.XZ, SourceDate())
    (again,) = archive_artifacts(tmp_path / "2", tmp_path / "3", (), ArchiveFormat.ZST, SourceDate())
    assert again.read_bytes() == first.read_bytes()


def test_archives_cannot_join_the_artifacts_they_are_made_of(make_artifact: MakeArtifact, tmp_path: Path) -> None:
    folder = make_artifact("blas_lib_generic", {}).parent
    with pytest.raises(InputError) as caught:
        archive_artifacts(folder, folder / "../artifacts", (), ArchiveFormat.ZST, SourceDate())
    assert str(caught.value) == (
        f"{folder}/../artifacts: is the folder of the artifacts itself. "
        "Choose another: a folder may hold an artifact only once."
    )


def test_nothing_is_unpacked_when_a_place_is_taken(make_artifact: MakeArtifact, tmp_path: Path) -> None:
    for name in ("a_lib_generic", "b_lib_generic"):
        make_artifact(name, {"stage/x": b""})
    paths = archive_artifacts(tmp_path / "artifacts", tmp_path / "out", (), ArchiveFormat.ZST, SourceDate())
    (tmp_path / "again/b_lib_generic").mkdir(parents=True)
    with pytest.raises(ProblemsError) as caught:
        extract_archives([*paths, tmp_path / "c.zip"], tmp_path / "again")
    assert [str(problem).partition(": ")[0] for problem in caught.value.problems] == [
        f"{tmp_path}/c.zip",
        f"{tmp_path}/again/b_lib_generic",
    ]
    assert [path.name for path in (tmp_path / "again").iterdir()] == ["b_lib_generic"]


def test_an_unusable_archive_is_reported_and_the_others_are_unpacked(
    make_artifact: MakeArtifact, make_archive: MakeArchive, tmp_path: Path
) -> None:
    make_artifact("a_lib_generic", {"stage/x": b""})
    (good,) = archive_artifacts(tmp_path / "artifacts", tmp_path / "out", (), ArchiveFormat.ZST, SourceDate())
    torn = make_archive("b_lib_generic.tar.xz", b"", directory="out")
    torn.write_bytes(torn.read_bytes()[:-1])
    with pytest.raises(ProblemsError) as caught:
        extract_archives([torn, good], tmp_path / "again")
    assert [str(problem) for problem in caught.value.problems] == [
        f"{torn}: is truncated: its compression has no end. Fetch it or make it again."
    ]
    assert [path.name for path in (tmp_path / "again").iterdir()] == ["a_lib_generic"]
