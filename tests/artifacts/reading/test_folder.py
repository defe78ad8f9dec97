"""Reading exploded artifacts."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from rocwheel.artifacts.model.artifact import Artifact, FileKind, Member
from rocwheel.artifacts.model.names import ArtifactName
from rocwheel.artifacts.reading.folder import read_folder
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.reading import FileRange
from tests.support.command_line import as_user, needs_setpriv, rocwheel

BLAS = ArtifactName("blas", "lib", "generic")
MakeArtifact = Callable[..., Path]


def test_members_are_listed_in_path_order_with_links_as_links(make_artifact: MakeArtifact) -> None:
    tree = {"stage/lib/libx.so.1": b"ELF", "stage/lib/libx.so": "./libx.so.1", "stage/a-b": b"", "stage/a/x": b"1"}
    folder = make_artifact("blas_lib_generic", tree)
    for path in (".", "stage", "stage/a", "stage/lib"):
        (folder / path).chmod(0o755)
    (folder / "stage/lib/libx.so.1").chmod(0o4750)
    (folder / "stage/a/x").chmod(0o600)
    (folder / "stage/a-b").chmod(0o644)
    assert read_folder(folder, BLAS) == Artifact(
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


def test_symlink_loops_are_recorded_and_never_followed(make_artifact: MakeArtifact) -> None:
    folder = make_artifact("blas_lib_generic", {"stage/a/up": "..", "stage/self": "self"})
    paths = [member.path for member in read_folder(folder, BLAS).members]
    assert paths == ["stage", "stage/a", "stage/a/up", "stage/self"]


def test_a_listed_stage_folder_may_be_absent_as_the_reference_leaves_it(make_artifact: MakeArtifact) -> None:
    folder = make_artifact("blas_dbg_generic", {"b/stage/x": b""}, manifest="a/stage\nb/stage\n")
    artifact = read_folder(folder, BLAS)
    assert artifact.stages == ("a/stage", "b/stage")
    assert [member.path for member in artifact.members] == ["b/stage", "b/stage/x"]


def test_an_artifact_may_be_empty(make_artifact: MakeArtifact) -> None:
    assert read_folder(make_artifact("blas_doc_generic", {}, manifest="\n"), BLAS).members == ()


def test_a_file_next_to_the_stage_folders_is_ignored_with_a_debug_log(
    make_artifact: MakeArtifact, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make_artifact("blas_lib_generic", {"README": b"", "stage/x": b"", "empty": None})
    with caplog.at_level(logging.DEBUG, "rocwheel"):
        artifact = read_folder(folder, BLAS)
    assert [member.path for member in artifact.members] == ["stage", "stage/x"]
    assert caplog.messages == [f"{folder}/README is outside the stage folders: ignored"]


def test_a_folder_without_manifest_is_refused(make_artifact: MakeArtifact) -> None:
    folder = make_artifact("blas_lib_generic", {"stage/x": b""}, manifest=None)
    with pytest.raises(InputError) as caught:
        read_folder(folder, BLAS)
    assert str(caught.value) == (
        f"{folder}: has no artifact_manifest.txt. Is it an artifact whose copying broke off? "
        "Complete or remove the folder."
    )


def test_an_oversized_manifest_is_refused(make_artifact: MakeArtifact) -> None:
    folder = make_artifact("blas_lib_generic", {}, manifest="a\n" * 600_000)
    with pytest.raises(InputError) as caught:
        read_folder(folder, BLAS)
    assert str(caught.value) == f"{folder}/artifact_manifest.txt: is larger than 1048576 bytes; expected a few lines"


def test_a_manifest_that_is_a_pipe_is_refused_instead_of_waited_for(make_artifact: MakeArtifact) -> None:
    folder = make_artifact("blas_lib_generic", {"stage/x": b""}, manifest=None)
    os.mkfifo(folder / "artifact_manifest.txt")
    with pytest.raises(
        InputError, match=r"artifact_manifest\.txt: is not a regular file; expected a list of stage folders"
    ):
        read_folder(folder, BLAS)


def test_a_manifest_that_is_a_folder_is_refused(make_artifact: MakeArtifact) -> None:
    folder = make_artifact("blas_lib_generic", {"artifact_manifest.txt": None}, manifest=None)
    with pytest.raises(InputError, match=r"artifact_manifest\.txt: can't be read \(Is a directory\)"):
        read_folder(folder, BLAS)


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ({"other/x": b""}, "other/x: is in no stage folder of the manifest"),
        ({"stage": b""}, "stage: is a file, but the manifest lists it as a stage folder"),
        ({"stage": "elsewhere"}, "stage: is a symlink, but the manifest lists it as a stage folder"),
        ({"stage/x": "/usr/lib/x"}, "stage/x: this symlink points to the absolute path '/usr/lib/x'"),
        ({"stage/a/x": "../../stage2/x"}, "stage/a/x: this symlink leaves the tree through '../../stage2/x'"),
        ({"stage/\udcff": b""}, "'stage/\\udcff': its path is not valid UTF-8 text"),
    ],
    ids=["unlisted stage", "stage is a file", "stage is a symlink", "absolute link", "link leaves stage", "no text"],
)
def test_a_member_that_is_unusable_is_a_problem(
    make_artifact: MakeArtifact, tree: dict[str, bytes | str | None], problem: str
) -> None:
    folder = make_artifact("blas_lib_generic", tree)
    with pytest.raises(ProblemsError) as caught:
        read_folder(folder, BLAS)
    assert str(caught.value) == f"{folder}: 1 problem\n  {folder}/{problem}"


def test_fifos_sockets_and_devices_are_problems(make_artifact: MakeArtifact, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_artifact("blas_lib_generic", {"stage/x": b""})
    os.mkfifo(folder / "stage/fifo")
    monkeypatch.chdir(folder)  # The path of a socket has to be short.
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("stage/socket")
    with pytest.raises(ProblemsError) as caught:
        read_folder(folder, BLAS)
    assert sorted(map(str, caught.value.problems)) == [
        f"{folder}/stage/fifo: is a device, fifo or socket; expected files, symlinks and folders only",
        f"{folder}/stage/socket: is a device, fifo or socket; expected files, symlinks and folders only",
    ]


@needs_setpriv
def test_what_may_not_be_read_is_named(make_artifact: MakeArtifact) -> None:
    folder = make_artifact("blas_lib_generic", {"stage/secret": b"", "stage/closed/x": b""})
    (folder / "stage/secret").chmod(0)
    (folder / "stage/closed").chmod(0)
    done = rocwheel("artifacts", "list", folder.parent, before=as_user())
    (folder / "stage/closed").chmod(0o755)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.endswith(
        f"error: {folder.parent}: 2 problems\n"
        f"  {folder}/stage/secret: can't be read. Check its permissions.\n"
        f"  {folder}/stage/closed: can't be read (Permission denied). Check that it exists and may be read.\n"
    )
