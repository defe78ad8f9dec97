"""Tests of `rocwheel.artifacts.reading`."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from rocwheel.artifacts.artifact import Artifact, ArtifactName, FileKind, Member
from rocwheel.artifacts.catalog import open_catalog
from rocwheel.artifacts.reading import (
    StoredArtifact,
    find_artifact_archives,
    find_artifacts,
    open_artifacts,
    read_artifact_folder,
)
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.reading import FileRange
from tests.support.command_line import as_user, needs_setpriv, rocwheel

MakeArtifact = Callable[..., Path]
MakeArchive = Callable[..., Path]
EXPECTED_NAME = (
    "is not an artifact name; expected {name}_{component}_{target} with letters, digits, and '.+:~-', "
    "such as blas_lib_gfx942"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "artifacts"
    folder.mkdir()
    return folder


def test_folders_and_archives_are_found_in_name_order(
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


def test_files_that_do_not_look_like_artifacts_are_skipped(
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
        f"ignoring {folder}/{name}, which does not look like an artifact"
        for name in (".rand_lib_generic.x1y2", "blas_lib_generic.tar.xz.sha256sum", "notes", "sources.tar.xz")
    ]


def test_a_folder_with_a_manifest_and_a_bad_name_is_reported(folder: Path, make_artifact: MakeArtifact) -> None:
    make_artifact("blas_lib", {})
    assert [str(problem) for problem in find_artifacts(folder).problems] == [f"{folder}/blas_lib: {EXPECTED_NAME}"]


def test_an_invalid_artifact_name_is_reported_without_a_manifest(folder: Path, make_artifact: MakeArtifact) -> None:
    make_artifact("a b_lib_x'", {}, manifest=None)
    assert [str(problem) for problem in find_artifacts(folder).problems] == [f"{folder}/a b_lib_x': {EXPECTED_NAME}"]


def test_an_archive_with_a_manifest_and_a_bad_name_is_reported(folder: Path, make_archive: MakeArchive) -> None:
    make_archive("blas_lib.tar.zst", b"artifact_manifest.txt\0...")
    found = find_artifacts(folder)
    assert [str(problem) for problem in found.problems] == [f"{folder}/blas_lib.tar.zst: {EXPECTED_NAME}"]


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tgz", ".tar.bz2", ".zip"])
def test_an_artifact_archive_in_an_unsupported_format_is_reported(folder: Path, suffix: str) -> None:
    (folder / f"blas_lib_generic{suffix}").write_bytes(b"")
    (problem,) = find_artifacts(folder).problems
    assert str(problem) == (
        f"{folder}/blas_lib_generic{suffix}: is not a readable artifact archive; "
        "expected .tar.xz or .tar.zst. Unpack the archive to a folder, or compress it with xz or zstd."
    )


def test_a_duplicate_artifact_is_reported(folder: Path, make_artifact: MakeArtifact, make_archive: MakeArchive) -> None:
    make_artifact("blas_lib_generic", {})
    make_archive("blas_lib_generic.tar.xz", b"")
    make_archive("blas_lib_generic.tar.zst", b"")
    found = find_artifacts(folder)
    assert found.artifacts == ()
    (problem,) = found.problems
    assert str(problem) == (
        f"{folder}: contains the same artifact several times: blas_lib_generic and blas_lib_generic.tar.xz and "
        "blas_lib_generic.tar.zst. Keep only one of them."
    )


def test_a_folder_without_artifacts_is_refused(folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        find_artifacts(folder)
    assert str(caught.value) == (
        f"{folder}: does not contain any artifacts; expected folders, or .tar.xz or .tar.zst archives, named "
        "{name}_{component}_{target}. Check the path."
    )


def test_a_missing_folder_or_a_file_instead_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, why, remedy in (
        ("missing", "No such file or directory", "Check whether it exists and is readable."),
        ("file", "Not a directory", "Pass a folder instead of a file."),
    ):
        with pytest.raises(InputError) as caught:
            find_artifacts(tmp_path / name)
        expected = f"{tmp_path}/{name}: can't be read ({why}); expected a folder of artifacts. {remedy}"
        assert str(caught.value) == expected


def test_a_folder_given_as_an_archive_gets_its_own_advice(tmp_path: Path) -> None:
    (problem,) = find_artifact_archives([tmp_path]).problems
    assert str(problem) == (
        f"{tmp_path}: is not a readable artifact archive; expected .tar.xz or .tar.zst. Specify the archives in the "
        "folder."
    )


def test_paths_given_as_archives_must_be_archives(tmp_path: Path) -> None:
    found = find_artifact_archives([tmp_path / "b_lib_x.tar.xz", tmp_path / "a_lib_x.tar.zst", tmp_path / "c_lib_x"])
    assert [str(artifact.name) for artifact in found.artifacts] == ["a_lib_x", "b_lib_x"]
    (problem,) = found.problems
    assert str(problem) == (
        f"{tmp_path}/c_lib_x: is not a readable artifact archive; expected .tar.xz or .tar.zst. "
        "Unpack the archive to a folder, or compress it with xz or zstd."
    )


BLAS = ArtifactName("blas", "lib", "generic")


def test_members_are_listed_in_path_order_and_links_are_kept(make_artifact: MakeArtifact) -> None:
    tree = {"stage/lib/libx.so.1": b"ELF", "stage/lib/libx.so": "./libx.so.1", "stage/a-b": b"", "stage/a/x": b"1"}
    folder = make_artifact("blas_lib_generic", tree)
    for path in (".", "stage", "stage/a", "stage/lib"):
        (folder / path).chmod(0o755)
    (folder / "stage/lib/libx.so.1").chmod(0o4750)
    (folder / "stage/a/x").chmod(0o600)
    (folder / "stage/a-b").chmod(0o644)
    assert read_artifact_folder(folder, BLAS) == Artifact(
        BLAS,
        str(folder),
        ("stage",),
        (
            Member("stage", FileKind.DIRECTORY, 0o755),
            Member("stage/a", FileKind.DIRECTORY, 0o755),
            Member("stage/a-b", FileKind.FILE, 0o644, source=FileRange.whole(folder / "stage/a-b")),
            Member("stage/a/x", FileKind.FILE, 0o600, source=FileRange.whole(folder / "stage/a/x")),
            Member("stage/lib", FileKind.DIRECTORY, 0o755),
            Member("stage/lib/libx.so", FileKind.SYMLINK, 0o777, link="./libx.so.1"),
            Member("stage/lib/libx.so.1", FileKind.FILE, 0o750, source=FileRange.whole(folder / "stage/lib/libx.so.1")),
        ),
    )


def test_symlink_loops_are_listed_but_not_followed(make_artifact: MakeArtifact) -> None:
    folder = make_artifact("blas_lib_generic", {"stage/a/up": "..", "stage/self": "self"})
    paths = [member.path for member in read_artifact_folder(folder, BLAS).members]
    assert paths == ["stage", "stage/a", "stage/a/up", "stage/self"]


def test_a_listed_stage_folder_may_be_missing(make_artifact: MakeArtifact) -> None:
    folder = make_artifact("blas_dbg_generic", {"b/stage/x": b""}, manifest="a/stage\nb/stage\n")
    artifact = read_artifact_folder(folder, BLAS)
    assert artifact.stages == ("a/stage", "b/stage")
    assert [member.path for member in artifact.members] == ["b/stage", "b/stage/x"]


def test_an_artifact_may_be_empty(make_artifact: MakeArtifact) -> None:
    assert read_artifact_folder(make_artifact("blas_doc_generic", {}, manifest="\n"), BLAS).members == ()


def test_a_file_outside_the_stage_folders_is_ignored_with_a_debug_message(
    make_artifact: MakeArtifact, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make_artifact("blas_lib_generic", {"README": b"", "stage/x": b"", "empty": None})
    with caplog.at_level(logging.DEBUG, "rocwheel"):
        artifact = read_artifact_folder(folder, BLAS)
    assert [member.path for member in artifact.members] == ["stage", "stage/x"]
    assert caplog.messages == [f"ignoring {folder}/README, which is outside the stage folders"]


def test_a_folder_without_a_manifest_is_refused(make_artifact: MakeArtifact) -> None:
    folder = make_artifact("blas_lib_generic", {"stage/x": b""}, manifest=None)
    with pytest.raises(InputError) as caught:
        read_artifact_folder(folder, BLAS)
    assert str(caught.value) == (
        f"{folder}: has no artifact_manifest.txt. If a copy of the artifact was interrupted, "
        "complete or remove the folder."
    )


def test_an_oversized_manifest_is_refused(make_artifact: MakeArtifact) -> None:
    folder = make_artifact("blas_lib_generic", {}, manifest="a\n" * 600_000)
    with pytest.raises(InputError) as caught:
        read_artifact_folder(folder, BLAS)
    assert (
        str(caught.value)
        == f"{folder}/artifact_manifest.txt: is larger than 1048576 bytes; expected a manifest with a few lines"
    )


def test_a_pipe_as_manifest_is_refused_without_blocking(make_artifact: MakeArtifact) -> None:
    folder = make_artifact("blas_lib_generic", {"stage/x": b""}, manifest=None)
    os.mkfifo(folder / "artifact_manifest.txt")
    with pytest.raises(
        InputError, match=r"artifact_manifest\.txt: is not a regular file; expected a list of stage folders"
    ):
        read_artifact_folder(folder, BLAS)


def test_a_folder_as_manifest_is_refused(make_artifact: MakeArtifact) -> None:
    folder = make_artifact("blas_lib_generic", {"artifact_manifest.txt": None}, manifest=None)
    with pytest.raises(InputError, match=r"artifact_manifest\.txt: can't be read \(Is a directory\)"):
        read_artifact_folder(folder, BLAS)


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ({"other/x": b""}, "other/x: is not in any stage folder that the manifest lists"),
        ({"stage": b""}, "stage: is a file, but the manifest lists it as a stage folder"),
        ({"stage": "elsewhere"}, "stage: is a symlink, but the manifest lists it as a stage folder"),
        ({"stage/x": "/usr/lib/x"}, "stage/x: is a symlink that points to the absolute path '/usr/lib/x'"),
        (
            {"stage/a/x": "../../stage2/x"},
            "stage/a/x: is a symlink that points out of the tree through '../../stage2/x'",
        ),
        ({"stage/\udcff": b""}, "'stage/\\udcff': its path is not valid UTF-8 text"),
    ],
    ids=["unlisted stage", "stage is a file", "stage is a symlink", "absolute link", "link leaves stage", "no text"],
)
def test_an_unusable_member_is_reported(
    make_artifact: MakeArtifact, tree: dict[str, bytes | str | None], problem: str
) -> None:
    folder = make_artifact("blas_lib_generic", tree)
    with pytest.raises(ProblemsError) as caught:
        read_artifact_folder(folder, BLAS)
    assert str(caught.value) == f"{folder}/{problem}"


def test_fifos_sockets_and_devices_are_reported(make_artifact: MakeArtifact, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_artifact("blas_lib_generic", {"stage/x": b""})
    os.mkfifo(folder / "stage/fifo")
    monkeypatch.chdir(folder)  # The path of a socket has to be short.
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("stage/socket")
    with pytest.raises(ProblemsError) as caught:
        read_artifact_folder(folder, BLAS)
    assert sorted(map(str, caught.value.problems)) == [
        f"{folder}/stage/fifo: is a device, FIFO, or socket; expected only files, symlinks, and folders",
        f"{folder}/stage/socket: is a device, FIFO, or socket; expected only files, symlinks, and folders",
    ]


@needs_setpriv
def test_unreadable_files_and_folders_are_reported_by_name(make_artifact: MakeArtifact) -> None:
    folder = make_artifact("blas_lib_generic", {"stage/secret": b"", "stage/closed/x": b""})
    (folder / "stage/secret").chmod(0)
    (folder / "stage/closed").chmod(0)
    done = rocwheel("artifacts", "list", folder.parent, before=as_user())
    (folder / "stage/closed").chmod(0o755)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.endswith(
        f"error: {folder.parent}: 2 problems\n"
        f"  {folder}/stage/secret: can't be read. Check the permissions.\n"
        f"  {folder}/stage/closed: can't be read (Permission denied). Check whether it exists and is readable.\n"
    )


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


def test_all_problems_of_all_artifacts_are_reported_together(
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


def test_only_the_requested_artifacts_are_read(tmp_path: Path, make_artifact: MakeArtifact) -> None:
    make_artifact("a_lib_generic", {})
    make_artifact("b_lib_generic", {}, manifest=None)
    with open_artifacts(tmp_path / "artifacts", ["a_lib_generic"]) as artifacts:
        assert [str(artifact.name) for artifact in artifacts] == ["a_lib_generic"]


def test_requested_artifacts_that_are_missing_are_reported(tmp_path: Path, make_artifact: MakeArtifact) -> None:
    make_artifact("a_lib_generic", {})
    with (
        pytest.raises(ProblemsError) as caught,
        open_artifacts(tmp_path / "artifacts", ["y_lib_x", "a_lib_generic", "z"]),
    ):
        pass
    folder = tmp_path / "artifacts"
    assert [str(problem) for problem in caught.value.problems] == [
        f"{folder}: does not contain the artifact y_lib_x",
        f"{folder}: does not contain the artifact z",
    ]


def test_progress_counts_the_compressed_bytes(
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


def test_temporary_files_are_closed_at_the_end_of_the_with_block(
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


@pytest.fixture
def folders(tmp_path: Path, make_artifact: MakeArtifact) -> tuple[Path, Path]:
    """Return two folders with one and the same artifact."""
    make_artifact("base_lib_generic", {"stage/bin/tool": b"1"})
    shutil.copytree(tmp_path / "artifacts", tmp_path / "more")
    return tmp_path / "artifacts", tmp_path / "more"


def test_the_artifacts_of_all_folders_are_listed_once_in_name_order(
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
        (lambda stage: (stage.parent / "artifact_manifest.txt").write_text("stage\nother\n"), "the stage folders"),
    ],
    ids=["bytes", "size", "executable", "another member", "stages"],
)
def test_an_artifact_that_differs_between_two_folders_is_refused(
    folders: tuple[Path, Path], change: Callable[[Path], object], difference: str
) -> None:
    change(folders[1] / "base_lib_generic/stage")
    with pytest.raises(InputError) as caught, open_catalog(*folders):
        pass
    assert str(caught.value) == (
        f"{folders[0]}/base_lib_generic: is a different artifact from {folders[1]}/base_lib_generic: "
        f"they differ in {difference}. Remove one of the artifacts, or omit one of the folders."
    )


def test_a_mode_difference_without_effect_on_execution_is_accepted(folders: tuple[Path, Path]) -> None:
    (folders[1] / "base_lib_generic/stage/bin/tool").chmod(0o600)
    (folders[1] / "base_lib_generic/stage/empty").mkdir()
    with open_catalog(*folders) as catalog:
        assert len(catalog.artifacts) == 1


def test_problems_in_all_folders_are_reported_together(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError) as caught, open_catalog(tmp_path / "one", tmp_path / "two"):
        pass
    assert "/one: " in str(caught.value)
    assert "/two: " in str(caught.value)
