"""Tests of `rocwheel.artifacts.archives`."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.artifacts.archives import ArchiveFormat, read_artifact_archive, write_archive
from rocwheel.artifacts.artifact import Artifact, ArtifactName, FileKind
from rocwheel.artifacts.reading import read_artifact_folder
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError, WorkError
from rocwheel.core.progress import SILENT
from rocwheel.wheels.sdist import SourceDate

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from rocwheel.artifacts.artifact import Artifact


BLAS = ArtifactName("blas", "lib", "generic")
ARCHIVE = Path("blas_lib_generic.tar.xz")
MakeTar = Callable[[Iterable[tarfile.TarInfo]], bytes]


def member(
    name: str, kind: bytes = tarfile.REGTYPE, *, link: str = "", size: int = 0, mode: int = 0o644
) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size, info.mode = kind, link, size, mode
    return info


MANIFEST = member("artifact_manifest.txt")


def read(tmp_path: Path, tar: bytes) -> Artifact:
    spool = tmp_path / "spool"
    spool.write_bytes(tar)
    with spool.open("rb") as file:
        return read_artifact_archive(ARCHIVE, BLAS, file)


def contents(artifact: Artifact) -> dict[str, bytes]:
    found = {}
    for item in artifact.members:
        if item.source is not None:
            with item.source.view() as data:
                found[item.path] = bytes(data)
    return found


def problems(tmp_path: Path, tar: bytes) -> list[str]:
    with pytest.raises(RocwheelError) as caught:
        read(tmp_path, tar)
    found = caught.value.problems if isinstance(caught.value, ProblemsError) else [caught.value]
    return [str(problem) for problem in found]


def test_file_members_refer_to_byte_ranges_in_the_tar(make_tar: MakeTar, tmp_path: Path) -> None:
    tar = make_tar([MANIFEST, member("stage/lib/b", size=3, mode=0o4755), member("stage/a", size=600)])
    (tmp_path / "spool").write_bytes(tar)
    with (tmp_path / "spool").open("rb") as file:
        artifact = read_artifact_archive(ARCHIVE, BLAS, file)
        assert contents(artifact) == {"stage/lib/b": b"xxx", "stage/a": b"x" * 600}
    assert [(item.path, item.mode) for item in artifact.members] == [("stage/a", 0o644), ("stage/lib/b", 0o755)]


def test_links_and_folders_are_listed(make_tar: MakeTar, tmp_path: Path) -> None:
    tar = make_tar(
        [
            MANIFEST,
            member("stage/lib", tarfile.DIRTYPE, mode=0o750),
            member("stage/llvm", tarfile.SYMTYPE, link="./lib/"),
        ]
    )
    folder, link = read(tmp_path, tar).members
    assert (folder.path, folder.kind, folder.mode) == ("stage/lib", FileKind.DIRECTORY, 0o750)
    assert (link.path, link.kind, link.link) == ("stage/llvm", FileKind.SYMLINK, "./lib/")


def test_a_hard_link_shares_the_content_of_its_target(make_tar: MakeTar, tmp_path: Path) -> None:
    tar = make_tar([MANIFEST, member("stage/b", size=2), member("stage/a", tarfile.LNKTYPE, link="stage/b")])
    first, second = read(tmp_path, tar).members
    assert first.source == second.source
    assert (first.path, first.kind) == ("stage/a", FileKind.FILE)


def test_member_names_may_begin_with_dot_slash(make_tar: MakeTar, tmp_path: Path) -> None:
    tar = make_tar([member("./", tarfile.DIRTYPE), member("./artifact_manifest.txt"), member("./stage/x")])
    assert [item.path for item in read(tmp_path, tar).members] == ["stage/x"]


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([member("/etc/passwd")], "/etc/passwd: its path is absolute"),
        ([member("stage/../../x")], "stage/../../x: its path contains '..'"),
        ([member("stage//x")], "stage//x: its path is not normalized"),
        ([member("stage/x"), member("stage/x")], "stage/x: occurs more than once"),
        ([member("stage/x", tarfile.DIRTYPE), member("stage/x")], "stage/x: occurs more than once"),
        ([MANIFEST], "artifact_manifest.txt: occurs more than once"),
        ([member("stage/x"), member("stage/x/y")], "stage/x/y: is below 'stage/x', which is not a folder"),
        (
            [member("stage/x", tarfile.SYMTYPE, link="y"), member("stage/x/y")],
            "stage/x/y: is below 'stage/x', which is not a folder",
        ),
        (
            [member("stage/x", tarfile.SYMTYPE, link="/etc")],
            "stage/x: is a symlink that points to the absolute path '/etc'",
        ),
        (
            [member("stage/a/x", tarfile.SYMTYPE, link="../../y")],
            "stage/a/x: is a symlink that points out of the tree through '../../y'",
        ),
        (
            [member("stage/x", tarfile.LNKTYPE, link="stage/y"), member("stage/y")],
            "stage/x: is a hard link to 'stage/y'; expected a link to an earlier file",
        ),
        (
            [member("stage/x", tarfile.LNKTYPE, link="/etc/passwd")],
            "stage/x: is a hard link to '/etc/passwd'; expected a link to an earlier file",
        ),
        (
            [member("stage/y", tarfile.SYMTYPE, link="z"), member("stage/x", tarfile.LNKTYPE, link="stage/y")],
            "stage/x: is a hard link to 'stage/y'; expected a link to an earlier file",
        ),
        (
            [member("stage/x", tarfile.CHRTYPE)],
            "stage/x: is a device or FIFO, or has an unknown type; expected only files, links, and folders",
        ),
        (
            [member("stage/x", tarfile.FIFOTYPE)],
            "stage/x: is a device or FIFO, or has an unknown type; expected only files, links, and folders",
        ),
        (
            [member("stage/x", b"Q")],
            "stage/x: is a device or FIFO, or has an unknown type; expected only files, links, and folders",
        ),
        ([member("other/x")], "other/x: is not in any stage folder that the manifest lists"),
        ([member("stage")], "stage: is a file, but the manifest lists it as a stage folder"),
    ],
)
def test_an_unsafe_member_is_reported(
    make_tar: MakeTar, tmp_path: Path, members: list[tarfile.TarInfo], expected: str
) -> None:
    found = problems(tmp_path, make_tar([MANIFEST, *members]))
    assert set(found) == {f"blas_lib_generic.tar.xz/{expected}"}


def test_a_member_name_that_is_not_utf8_is_reported(make_tar: MakeTar, tmp_path: Path) -> None:
    tar = make_tar([MANIFEST, member("stage/xyz")]).replace(b"stage/xyz", b"stage/\xffyz")
    assert problems(tmp_path, _with_checksums(tar)) == [
        "blas_lib_generic.tar.xz/'stage/\\udcffyz': its path is not valid UTF-8 text"
    ]


def test_a_member_name_that_occurs_three_times_is_reported_once(make_tar: MakeTar, tmp_path: Path) -> None:
    assert problems(tmp_path, make_tar([MANIFEST, *[member("stage/x")] * 3])) == [
        "blas_lib_generic.tar.xz/stage/x: occurs more than once"
    ]


def test_every_unsafe_member_is_reported(make_tar: MakeTar, tmp_path: Path) -> None:
    assert len(problems(tmp_path, make_tar([MANIFEST, member("/a"), member("../b"), member("c/d")]))) == 3


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ([], "has no members"),
        ([member("stage/x"), MANIFEST], "begins with 'stage/x'"),
        ([member("stage/artifact_manifest.txt")], "begins with 'stage/artifact_manifest.txt'"),
        (
            [member("artifact_manifest.txt", tarfile.SYMTYPE, link="x")],
            "begins with 'artifact_manifest.txt', which is not a regular file",
        ),
    ],
)
def test_the_manifest_must_be_the_first_member(
    make_tar: MakeTar, tmp_path: Path, members: list[tarfile.TarInfo], found: str
) -> None:
    (problem,) = problems(tmp_path, make_tar(members))
    assert problem == (
        f"blas_lib_generic.tar.xz: {found}; expected artifact_manifest.txt as the first member. "
        "Create the archive with 'rocwheel artifacts archive'."
    )


def test_a_malformed_manifest_is_reported(make_tar: MakeTar, tmp_path: Path) -> None:
    tar = make_tar([MANIFEST]).replace(b"stage\n", b"/tage\n")
    (problem,) = problems(tmp_path, tar)
    assert problem == (
        "blas_lib_generic.tar.xz/artifact_manifest.txt: the path of the stage folder '/tage' is absolute; "
        "expected a relative path inside the artifact"
    )


def test_an_oversized_manifest_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(member("artifact_manifest.txt", size=2 << 20), io.BytesIO(bytes(2 << 20)))
    assert problems(tmp_path, buffer.getvalue()) == [
        (
            "blas_lib_generic.tar.xz/artifact_manifest.txt: is larger than 1048576 bytes; expected a manifest with a "
            "few "
            "lines"
        )
    ]


@pytest.mark.parametrize("kept", [1024, 1536, 1600, 2560])
def test_a_truncated_tar_is_reported(make_tar: MakeTar, tmp_path: Path, kept: int) -> None:
    # Manifest at 0, its bytes at 512, a header at 1024, 1000 bytes at 1536, the end at 2560.
    tar = make_tar([MANIFEST, member("stage/x", size=1000)])[:kept]
    assert problems(tmp_path, tar)[0] in {
        (
            "blas_lib_generic.tar.xz: does not contain a valid tar archive (the end is missing). Download or create "
            "the archive again."
        ),
        (
            "blas_lib_generic.tar.xz: does not contain a valid tar archive (unexpected end of data). Download or "
            "create the archive again."
        ),
    }


def test_a_damaged_header_is_not_mistaken_for_the_end_of_the_archive(make_tar: MakeTar, tmp_path: Path) -> None:
    tar = bytearray(make_tar([MANIFEST, member("stage/x"), member("stage/y")]))
    tar[1024] ^= 1
    assert problems(tmp_path, bytes(tar)) == [
        (
            f"{ARCHIVE}: does not contain a valid tar archive (a header is damaged: bad checksum). Download or create "
            "the archive again."
        )
    ]


@pytest.mark.parametrize("data", [b"", b"no tar at all" * 100], ids=["empty", "text"])
def test_bytes_that_are_not_a_tar_are_reported(tmp_path: Path, data: bytes) -> None:
    (problem,) = problems(tmp_path, data)
    assert problem.startswith("blas_lib_generic.tar.xz: does not contain a valid tar archive (")


def test_a_negative_member_size_does_not_cause_an_endless_loop(make_tar: MakeTar, tmp_path: Path) -> None:
    tar = bytearray(make_tar([MANIFEST, member("stage/x")]))
    tar[1024 + 124 : 1024 + 136] = (-1024).to_bytes(12, "big", signed=True)
    (problem,) = problems(tmp_path, _with_checksums(bytes(tar)))
    assert problem.startswith("blas_lib_generic.tar.xz: does not contain a valid tar archive (")


def test_a_sparse_member_is_refused(tmp_path: Path) -> None:
    stage = tmp_path / "in/stage"
    stage.mkdir(parents=True)
    (tmp_path / "in/artifact_manifest.txt").write_text("stage\n")
    with (stage / "holes").open("wb") as file:
        file.truncate(10 << 20)
        file.seek(5 << 20)
        file.write(b"data")
    for version in ("0.1", "1.0"):
        command = ["tar", "-C", str(tmp_path / "in"), "--sparse", f"--sparse-version={version}", "--format=posix"]
        tar = subprocess.run([*command, "-c", "artifact_manifest.txt", "stage"], capture_output=True, check=True).stdout
        (problem,) = problems(tmp_path, tar)
        assert problem == (
            "blas_lib_generic.tar.xz/stage/holes: is a sparse member; expected complete files (tar without --sparse)"
        )


@pytest.mark.parametrize(("form", "depth"), [("gnu", 3), ("oldgnu", 3), ("posix", 3), ("ustar", 0)])
def test_archives_made_by_gnu_tar_can_be_read(tmp_path: Path, form: str, depth: int) -> None:
    root = tmp_path / "in"
    long = "math-libs/BLAS/rocSPARSE/stage/lib/" + "/".join(["a" * 60] * depth or ["x"])
    (root / long).mkdir(parents=True)
    (root / "artifact_manifest.txt").write_text("math-libs/BLAS/rocSPARSE/stage\n")
    (root / long / "libx.so.1").write_bytes(b"ELF")
    (root / long / "hard").hardlink_to(root / long / "libx.so.1")
    (root / long / "libx.so").symlink_to("libx.so.1")
    names = ["artifact_manifest.txt", "math-libs/BLAS/rocSPARSE/stage"]
    tar = subprocess.run(
        ["tar", "-C", str(root), f"--format={form}", "-c", *names], capture_output=True, check=True
    ).stdout
    (tmp_path / "spool").write_bytes(tar)
    with (tmp_path / "spool").open("rb") as file:
        artifact = read_artifact_archive(ARCHIVE, BLAS, file)
        assert contents(artifact) == {f"{long}/hard": b"ELF", f"{long}/libx.so.1": b"ELF"}
    assert [(item.path, item.link) for item in artifact.members if item.link] == [(f"{long}/libx.so", "libx.so.1")]


def _with_checksums(tar: bytes) -> bytes:
    """Correct the checksum of the header at byte 1024."""
    header = bytearray(tar[1024:1536])
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return tar[:1024] + bytes(header) + tar[1536:]


def _sample() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(member("artifact_manifest.txt", size=6), io.BytesIO(b"stage\n"))
        tar.addfile(member("stage/" + "n\xe4me" * 30, size=600), io.BytesIO(b"x" * 600))
        tar.addfile(member("stage/link", tarfile.SYMTYPE, link="target"))
    return buffer.getvalue()[:6144]


SAMPLE = _sample()


@given(st.dictionaries(st.integers(0, len(SAMPLE) - 1), st.integers(0, 255), min_size=1, max_size=6), st.booleans())
def test_a_damaged_tar_is_read_or_refused_without_a_traceback(damage: dict[int, int], mend: bool) -> None:
    tar = bytearray(SAMPLE)
    for at, value in damage.items():
        tar[at] = value
    with tempfile.TemporaryFile() as file:
        file.write(_with_checksums(bytes(tar)) if mend else tar)
        with suppress(InputError, ProblemsError):
            read_artifact_archive(ARCHIVE, BLAS, file)


class _Disk(io.FileIO):
    """A file of which each read gives one byte, and which ends in an error."""

    good = 1 << 20

    def readinto(self, buffer: Buffer, /) -> int | None:
        """Read one byte."""
        if self.tell() >= self.good:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().readinto(memoryview(buffer)[:1])


def test_short_reads_from_the_disk_are_continued(make_tar: MakeTar, tmp_path: Path) -> None:
    tar = tmp_path / "tar"
    tar.write_bytes(make_tar([MANIFEST, member("stage/a", size=5)]))
    with _Disk(tar) as file:
        assert [item.path for item in read_artifact_archive(ARCHIVE, BLAS, file).members] == ["stage/a"]


def test_an_unreadable_temporary_file_is_not_reported_as_a_damaged_archive(
    make_tar: MakeTar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(_Disk, "good", 700)
    tar = tmp_path / "tar"
    tar.write_bytes(make_tar([MANIFEST, member("stage/a", size=5)]))
    message = f"{tmp_path}: the decompressed content of {ARCHIVE} can't be read (Input/output error). "
    with _Disk(tar) as file, pytest.raises(WorkError, match=f"^{re.escape(message)}"):
        read_artifact_archive(ARCHIVE, BLAS, file)


MakeArtifact = Callable[..., Path]
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
    return read_artifact_folder(folder, BLAS)


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
def test_gnu_tar_can_unpack_written_archives(artifact: Artifact, tmp_path: Path, archive_format: ArchiveFormat) -> None:
    archive = write(artifact, tmp_path, archive_format)
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    subprocess.run(["tar", "-C", str(unpacked), "-xf", str(archive)], check=True)
    again = read_artifact_folder(unpacked, BLAS)
    assert [(item.path, item.kind, item.mode, item.link) for item in again.members] == [
        (item.path, item.kind, item.plain_mode, item.link) for item in artifact.members
    ]
    assert (unpacked / "stage/lib/libx.so").read_bytes() == bytes(range(256)) * 5
    assert (unpacked / "artifact_manifest.txt").read_text() == "stage\nother/stage\n"


@pytest.mark.parametrize("archive_format", ArchiveFormat)
def test_the_same_members_produce_the_same_bytes(
    make_artifact: MakeArtifact, tmp_path: Path, archive_format: ArchiveFormat
) -> None:
    digests = set()
    for number, paths in enumerate((["stage/a", "stage/b"], ["stage/b", "stage/a"])):
        folder = make_artifact("blas_lib_generic", dict.fromkeys(paths, b"x" * 5000), directory=f"d{number}")
        os.utime(folder / "stage/a", (number, number))
        archive = write(read_artifact_folder(folder, BLAS), tmp_path / f"out{number}", archive_format)
        digests.add(hashlib.sha256(archive.read_bytes()).hexdigest())
    assert len(digests) == 1


def test_members_have_the_source_date(artifact: Artifact, tmp_path: Path) -> None:
    archive = write_archive(artifact, tmp_path, ArchiveFormat.XZ, SourceDate(1700000000), advance=SILENT.advance)
    with tarfile.open(archive) as tar:
        assert {info.mtime for info in tar} == {1700000000}


def test_the_reported_bytes_add_up_to_the_size_of_the_files(artifact: Artifact, tmp_path: Path) -> None:
    told: list[int] = []
    write_archive(artifact, tmp_path, ArchiveFormat.ZST, SourceDate(), advance=told.append)
    assert sum(told) == artifact.size == 1284


def test_an_existing_archive_is_replaced(artifact: Artifact, tmp_path: Path) -> None:
    (tmp_path / "blas_lib_generic.tar.zst").write_bytes(b"old")
    assert write(artifact, tmp_path).read_bytes() != b"old"


def test_a_file_that_shrinks_during_archiving_leaves_no_archive(artifact: Artifact, tmp_path: Path) -> None:
    Path(artifact.location, "stage/lib/libx.so.1").write_bytes(b"short")
    with pytest.raises(InputError, match=r"stage/lib/libx\.so\.1: changed from \d+ to 5 bytes while"):
        write(artifact, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
