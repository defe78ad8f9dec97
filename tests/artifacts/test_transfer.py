"""Tests of `rocwheel.artifacts.transfer`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rocwheel.artifacts import transfer
from rocwheel.artifacts.archives import ArchiveFormat
from rocwheel.artifacts.artifact import Artifact, ArtifactName, FileKind, Member
from rocwheel.artifacts.reading import read_artifact_folder
from rocwheel.artifacts.transfer import archive_artifacts, extract_archives, extract_artifact, write_artifact
from rocwheel.core.errors import InputError, ProblemsError, WorkError
from rocwheel.core.reading import FileRange
from rocwheel.wheels.sdist import SourceDate

MakeArtifact = Callable[..., Path]
BLAS = ArtifactName("blas", "lib", "generic")


@pytest.fixture
def artifact(make_artifact: MakeArtifact) -> Artifact:
    tree = {"stage/bin/tool": b"T", "stage/lib/libx.so": "./libx.so.1", "stage/lib/libx.so.1": b"X", "stage/none": None}
    folder = make_artifact("blas_lib_generic", tree, manifest="stage\nabsent/stage\n")
    (folder / "stage/bin/tool").chmod(0o755)
    (folder / "stage/bin").chmod(0o555)
    (folder / "stage/lib").chmod(0o777)
    (folder / "stage/lib/libx.so.1").chmod(0o666)
    return read_artifact_folder(folder, BLAS)


def test_an_artifact_is_extracted_into_a_folder_with_its_name(artifact: Artifact, tmp_path: Path) -> None:
    place = extract_artifact(artifact, tmp_path / "out")
    assert place == tmp_path / "out/blas_lib_generic"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["blas_lib_generic"]
    assert (place / "artifact_manifest.txt").read_text() == "stage\nabsent/stage\n"
    again = read_artifact_folder(place, BLAS)
    assert [(item.path, item.kind, item.mode, item.link) for item in again.members] == [
        ("absent/stage", FileKind.DIRECTORY, 0o755, None),
        ("stage", FileKind.DIRECTORY, 0o755, None),
        ("stage/bin", FileKind.DIRECTORY, 0o755, None),
        ("stage/bin/tool", FileKind.FILE, 0o755, None),
        ("stage/lib", FileKind.DIRECTORY, 0o755, None),
        ("stage/lib/libx.so", FileKind.SYMLINK, 0o777, "./libx.so.1"),
        ("stage/lib/libx.so.1", FileKind.FILE, 0o644, None),
        ("stage/none", FileKind.DIRECTORY, 0o755, None),
    ]
    assert (place / "stage/lib/libx.so").read_bytes() == b"X"


def test_a_folder_created_by_another_process_during_extraction_is_reported(
    artifact: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_slowly(written: Artifact, root: Path) -> None:
        write_artifact(written, root)
        place.mkdir()
        write_artifact(written, place)

    place = tmp_path / "out/blas_lib_generic"
    monkeypatch.setattr(transfer, "write_artifact", write_slowly)
    with pytest.raises(InputError, match=r"blas_lib_generic: already exists\. Remove the existing folder, or choose "):
        extract_artifact(artifact, tmp_path / "out")


def test_folders_without_their_own_member_are_created(artifact: Artifact, tmp_path: Path) -> None:
    members = tuple(member for member in artifact.members if member.kind is not FileKind.DIRECTORY)
    place = extract_artifact(msgspec.structs.replace(artifact, members=members), tmp_path / "out")
    assert (place / "stage/bin/tool").read_bytes() == b"T"


def test_files_with_shared_bytes_become_hard_links(artifact: Artifact, tmp_path: Path) -> None:
    source = FileRange(f"{artifact.location}/stage/lib/libx.so.1", 0, 1)
    members = tuple(Member(f"stage/{name}", FileKind.FILE, 0o644, source=source) for name in "ab")
    place = extract_artifact(msgspec.structs.replace(artifact, members=members), tmp_path / "out")
    assert (place / "stage/a").samefile(place / "stage/b")


@pytest.mark.parametrize("kind", ["folder", "file", "dangling symlink"])
def test_an_existing_path_is_never_overwritten(artifact: Artifact, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "out/blas_lib_generic"
    place.parent.mkdir()
    if kind == "folder":
        place.mkdir()
    elif kind == "file":
        place.write_bytes(b"")
    else:
        place.symlink_to("nowhere")
    with pytest.raises(InputError) as caught:
        extract_artifact(artifact, tmp_path / "out")
    assert str(caught.value) == f"{place}: already exists. Remove the existing folder, or choose another folder."


def test_a_missing_source_file_leaves_no_output_behind(artifact: Artifact, tmp_path: Path) -> None:
    Path(artifact.location, "stage/lib/libx.so.1").unlink()
    with pytest.raises(InputError, match=r"stage/lib/libx\.so\.1: can't be read \(No such file or directory\)"):
        extract_artifact(artifact, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_file_as_destination_is_reported(artifact: Artifact, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(WorkError) as caught:
        extract_artifact(artifact, tmp_path / "out")
    assert str(caught.value) == (
        f"{tmp_path}/out/blas_lib_generic: can't be written (File exists). "
        "Choose another output, or remove the file at the path of its parent folder."
    )


def test_a_full_disk_leaves_no_output_behind(make_artifact: MakeArtifact, tmp_path: Path) -> None:
    folder = make_artifact("blas_lib_generic", {"stage/a": b"a", "stage/b": bytes(100_000), "stage/c": b"c"})
    # A limit on the size of files stops writing as a full disk does, without being root.
    program = (
        "import resource, sys; from pathlib import Path\n"
        "from rocwheel.artifacts.transfer import extract_artifact\n"
        "from rocwheel.artifacts.reading import read_artifact_folder\n"
        "from rocwheel.artifacts.artifact import ArtifactName\n"
        "from rocwheel.core.errors import WorkError\n"
        "artifact = read_artifact_folder(Path(sys.argv[1]), ArtifactName.parse('blas_lib_generic'))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try: extract_artifact(artifact, Path(sys.argv[2]))\n"
        "except WorkError as e: print(e)\n"
    )
    command = [sys.executable, "-c", program, str(folder), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"{tmp_path}/out/blas_lib_generic: can't be written (File too large). "
        "Check the free space and the permissions of the folder.\n"
    )
    assert list((tmp_path / "out").iterdir()) == []


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


def test_repacking_an_archive_in_another_format_does_not_change_its_content(
    make_artifact: MakeArtifact, tmp_path: Path
) -> None:
    make_artifact("blas_lib_generic", {"stage/a": b"A", "stage/b": "a"})
    (first,) = archive_artifacts(tmp_path / "artifacts", tmp_path / "1", (), ArchiveFormat.ZST, SourceDate())
    archive_artifacts(first.parent, tmp_path / "2", (), ArchiveFormat.XZ, SourceDate())
    (again,) = archive_artifacts(tmp_path / "2", tmp_path / "3", (), ArchiveFormat.ZST, SourceDate())
    assert again.read_bytes() == first.read_bytes()


def test_archives_cannot_be_written_into_the_source_folder(make_artifact: MakeArtifact, tmp_path: Path) -> None:
    folder = make_artifact("blas_lib_generic", {}).parent
    with pytest.raises(InputError) as caught:
        archive_artifacts(folder, folder / "../artifacts", (), ArchiveFormat.ZST, SourceDate())
    assert str(caught.value) == (
        f"{folder}/../artifacts: is the source folder of the artifacts. "
        "Choose another folder, because a folder may contain an artifact only once."
    )


def test_nothing_is_unpacked_if_a_destination_exists(make_artifact: MakeArtifact, tmp_path: Path) -> None:
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


def test_an_unusable_archive_is_reported_and_the_other_archives_are_unpacked(
    make_artifact: MakeArtifact, make_archive: MakeArchive, tmp_path: Path
) -> None:
    make_artifact("a_lib_generic", {"stage/x": b""})
    (good,) = archive_artifacts(tmp_path / "artifacts", tmp_path / "out", (), ArchiveFormat.ZST, SourceDate())
    torn = make_archive("b_lib_generic.tar.xz", b"", directory="out")
    torn.write_bytes(torn.read_bytes()[:-1])
    with pytest.raises(ProblemsError) as caught:
        extract_archives([torn, good], tmp_path / "again")
    assert [str(problem) for problem in caught.value.problems] == [
        f"{torn}: is truncated: its compressed data ends early. Download or create the archive again."
    ]
    assert [path.name for path in (tmp_path / "again").iterdir()] == ["a_lib_generic"]
