"""Writing artifact archives."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.archives.write import ArchiveFormat, write_archive
from rocwheel.artifacts.model.names import ArtifactName
from rocwheel.artifacts.reading.folder import read_folder
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT
from rocwheel.distributions.formats.source_date import SourceDate

if TYPE_CHECKING:
    from rocwheel.artifacts.model.artifact import Artifact

MakeArtifact = Callable[..., Path]
BLAS = ArtifactName("blas", "lib", "generic")
LONG = "stage/lib/" + "/".join(["n\xe4me" * 12] * 4)


def write(artifact: Artifact, folder: Path, archive_format: ArchiveFormat = ArchiveFormat.ZST) -> Path:
    return write_archive(artifact, folder, archive_format, SourceDate(), advance=SILENT.advance)


@pytest.fixture
def artifact(make_artifact: MakeArtifact) -> Artifact:
    tree = {
        "stage/lib/libx.so.1": bytes(range(256)) * 5,
        "stage/lib/libx.so": "libx.so.1",
        "stage/bin/tool": b"",
        "stage/empty": None,
        LONG: b"long",
    }
    folder = make_artifact("blas_lib_generic", tree, manifest="stage\nother/stage\n")
    (folder / "stage/bin/tool").chmod(0o755)
    (folder / "stage/empty").chmod(0o700)
    (folder / "stage/lib/libx.so.1").chmod(0o666)
    return read_folder(folder, BLAS)


@pytest.mark.parametrize(("archive_format", "option"), [(ArchiveFormat.XZ, "--xz"), (ArchiveFormat.ZST, "--zstd")])
def test_gnu_tar_lists_the_manifest_first_and_members_in_order(
    artifact: Artifact, tmp_path: Path, archive_format: ArchiveFormat, option: str
) -> None:
    archive = write(artifact, tmp_path / "out", archive_format)
    assert archive == tmp_path / f"out/blas_lib_generic.tar.{archive_format.value}"
    command = ["tar", "--utc", "--full-time", "--quoting-style=literal", option, "-tvf", str(archive)]
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    listing = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    folders = [LONG.rsplit("/", up)[0] for up in (3, 2, 1)]
    assert [line.split() for line in listing.splitlines()] == [
        ["-rw-r--r--", "root/root", "18", "1980-01-01", "00:00:00", "artifact_manifest.txt"],
        ["drwxr-xr-x", "root/root", "0", "1980-01-01", "00:00:00", "stage/"],
        ["drwxr-xr-x", "root/root", "0", "1980-01-01", "00:00:00", "stage/bin/"],
        ["-rwxr-xr-x", "root/root", "0", "1980-01-01", "00:00:00", "stage/bin/tool"],
        ["drwxr-xr-x", "root/root", "0", "1980-01-01", "00:00:00", "stage/empty/"],
        ["drwxr-xr-x", "root/root", "0", "1980-01-01", "00:00:00", "stage/lib/"],
        ["lrwxrwxrwx", "root/root", "0", "1980-01-01", "00:00:00", "stage/lib/libx.so", "->", "libx.so.1"],
        ["-rw-r--r--", "root/root", "1280", "1980-01-01", "00:00:00", "stage/lib/libx.so.1"],
        *[["drwxr-xr-x", "root/root", "0", "1980-01-01", "00:00:00", f"{folder}/"] for folder in folders],
        ["-rw-r--r--", "root/root", "4", "1980-01-01", "00:00:00", LONG],
    ]


@pytest.mark.parametrize("archive_format", ArchiveFormat)
def test_gnu_tar_unpacks_what_was_packed(artifact: Artifact, tmp_path: Path, archive_format: ArchiveFormat) -> None:
    archive = write(artifact, tmp_path, archive_format)
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    subprocess.run(["tar", "-C", str(unpacked), "-xf", str(archive)], check=True)
    again = read_folder(unpacked, BLAS)
    assert [(item.path, item.kind, item.mode, item.link) for item in again.members] == [
        (item.path, item.kind, item.plain_mode, item.link) for item in artifact.members
    ]
    assert (unpacked / "stage/lib/libx.so").read_bytes() == bytes(range(256)) * 5
    assert (unpacked / "artifact_manifest.txt").read_text() == "stage\nother/stage\n"


@pytest.mark.parametrize("archive_format", ArchiveFormat)
def test_the_same_members_give_the_same_bytes(
    make_artifact: MakeArtifact, tmp_path: Path, archive_format: ArchiveFormat
) -> None:
    digests = set()
    for number, paths in enumerate((["stage/a", "stage/b"], ["stage/b", "stage/a"])):
        folder = make_artifact("blas_lib_generic", dict.fromkeys(paths, b"x" * 5000), directory=f"d{number}")
        os.utime(folder / "stage/a", (number, number))
        archive = write(read_folder(folder, BLAS), tmp_path / f"out{number}", archive_format)
        digests.add(hashlib.sha256(archive.read_bytes()).hexdigest())
    assert len(digests) == 1


def test_members_bear_the_date_given(artifact: Artifact, tmp_path: Path) -> None:
    archive = write_archive(artifact, tmp_path, ArchiveFormat.XZ, SourceDate(1700000000), advance=SILENT.advance)
    with tarfile.open(archive) as tar:
        assert {info.mtime for info in tar} == {1700000000}


def test_the_bytes_reported_are_those_of_the_files(artifact: Artifact, tmp_path: Path) -> None:
    told: list[int] = []
    write_archive(artifact, tmp_path, ArchiveFormat.ZST, SourceDate(), advance=told.append)
    assert sum(told) == artifact.size == 1284


def test_an_archive_already_there_is_replaced(artifact: Artifact, tmp_path: Path) -> None:
    (tmp_path / "blas_lib_generic.tar.zst").write_bytes(b"old")
    assert write(artifact, tmp_path).read_bytes() != b"old"


def test_a_file_that_shrinks_meanwhile_is_reported_and_leaves_no_archive(artifact: Artifact, tmp_path: Path) -> None:
    Path(artifact.location, "stage/lib/libx.so.1").write_bytes(b"short")
    with pytest.raises(InputError, match=r"stage/lib/libx\.so\.1: changed from \d+ to 5 bytes while"):
        write(artifact, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
