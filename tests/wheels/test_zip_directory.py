"""Tests of `rocwheel.wheels.zip_directory`."""

from __future__ import annotations

import errno
import os
import random
import re
import struct
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.core import compression
from rocwheel.core.errors import InputError
from rocwheel.wheels.zip_directory import find_dist_info, find_metadata, read_directory

if TYPE_CHECKING:
    from collections.abc import Callable


WHEEL = Path("a.whl")


def test_the_dist_info_folder_of_a_wheel_is_found() -> None:
    assert find_dist_info(WHEEL, ["a/__init__.py", "a-1.0.dist-info/WHEEL", "a-1.0.dist-info/RECORD"]) == (
        "a-1.0.dist-info"
    )


def test_a_nested_dist_info_folder_is_not_the_one_of_the_wheel() -> None:
    names = ["a/_vendor/b-1.0.dist-info/METADATA", "a-1.0.dist-info/METADATA"]
    assert find_metadata(WHEEL, names) == "a-1.0.dist-info/METADATA"


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["a.py"], "has no .dist-info folder; expected a wheel, which has exactly one"),
        (
            ["a.dist-info/METADATA", "b.dist-info/WHEEL"],
            "has several .dist-info folders: a.dist-info, b.dist-info; expected a wheel, which has exactly one",
        ),
        (["a.dist-info/WHEEL"], "has no a.dist-info/METADATA; expected a wheel"),
    ],
    ids=["none", "two", "no METADATA"],
)
def test_a_wheel_without_exactly_one_metadata_file_is_refused(names: list[str], found: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"a.whl: {found}")):
        find_metadata(WHEEL, names)


def test_the_error_includes_the_expectation_of_the_caller() -> None:
    with pytest.raises(InputError, match=re.escape("a.whl: has no .dist-info folder; expected that of a 1.0")):
        find_metadata(WHEEL, ["a.py"], expected="that of a 1.0")


def write(path: Path, *, method: int = zipfile.ZIP_DEFLATED, **contents: bytes) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return path


def test_only_unix_modes_are_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        tool = zipfile.ZipInfo("tool")
        tool.external_attr = 0o100755 << 16
        archive.writestr(tool, b"")
        archive.writestr(zipfile.ZipInfo("plain"), b"")
        archive.writestr("folder/", b"")
    found = [(member.name, member.mode) for member in read_directory(tmp_path / "a.zip")]
    assert found == [("tool", 0o100755), ("plain", 0o600)]


@pytest.mark.parametrize("keep", [0, 10, 60], ids=["empty", "start", "no end"])
def test_an_incomplete_archive_is_refused(tmp_path: Path, keep: int) -> None:
    path = write(tmp_path / "a.zip", a=b"content")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(
        InputError, match=r"a damaged archive \(File is not a zip file\)\. Build or download it again\."
    ):
        read_directory(path)


def write_zeros(path: Path, members: int) -> Path:
    """Write an archive of members that are each 1 MiB of zeros, packed to a thousandth."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(members):
            archive.writestr(f"a{number}", bytes(1 << 20))
    return path


def test_an_archive_with_an_extreme_unpacked_size_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_TRUSTED", 16 << 20)
    path = write_zeros(tmp_path / "a.zip", 17)
    with pytest.raises(InputError) as error:
        read_directory(path)
    assert str(error.value) == (
        f"{path}: unpacks {path.stat().st_size} bytes to 17825792 bytes; expected at "
        "most 1 GiB, or 200 times its packed size. "
        "If you trust the archive, pack it again without compression."
    )


def test_a_large_archive_may_be_compressed_to_one_percent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_TRUSTED", 4096)
    path = write(tmp_path / "a.zip", a=random.Random(1).randbytes(1000) + bytes(100_000))
    assert [member.size for member in read_directory(path)] == [101_000]


def test_a_small_archive_may_have_any_compression_ratio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_TRUSTED", 16 << 20)
    assert len(read_directory(write_zeros(tmp_path / "a.zip", 16))) == 16


def test_a_method_unsupported_by_installers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_directory(write(tmp_path / "a.zip", method=zipfile.ZIP_LZMA, a=b"content"))
    assert str(error.value) == (
        f"{tmp_path}/a.zip!a: is compressed with method 14; expected a stored or "
        "deflated member, which installers can read"
    )


def test_a_member_without_a_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", b"data")
    # The name becomes the first byte of an extra field, in the local header and in the directory.
    content = bytearray(path.read_bytes())
    local, central = content.find(b"PK\3\4"), content.find(b"PK\1\2")
    for lengths in (local + 26, central + 28):
        content[lengths : lengths + 4] = b"\0\0\1\0"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_directory(path)
    assert str(caught.value) == f"{path}: has a member without a name. Build or download it again."


def damage(path: Path, change: Callable[[bytearray, int, int], None]) -> str:
    """Change an archive by what is given its bytes and the places of its first local header and directory entry."""
    content = bytearray(path.read_bytes())
    change(content, content.find(b"PK\3\4"), content.find(b"PK\1\2"))
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_directory(path)
    return str(caught.value)


def test_a_member_with_another_name_in_its_local_header_is_refused(tmp_path: Path) -> None:
    def rename(content: bytearray, local: int, _central: int) -> None:
        content[local + 30 : local + 31] = b"b"

    path = write(tmp_path / "a.zip", a=b"content")
    assert damage(path, rename) == (
        f"{path}!a: has the name b'b' in its local header; expected the name in the central "
        "directory. Build or download it again."
    )


def test_two_members_with_the_same_name_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zip", a=b"one", b=b"two")
    content = bytearray(path.read_bytes())
    content[content.rfind(b"PK\3\4") + 30] = content[content.rfind(b"PK\1\2") + 46] = ord("a")
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_directory(path)
    assert str(caught.value) == (f"{path}!a: occurs twice; expected unique member names. Build or download it again.")


def test_members_that_share_bytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as inner:
        inner.writestr("b", b"content")
    local = path.read_bytes()[: path.read_bytes().find(b"PK\1\2")]
    with zipfile.ZipFile(path, "w") as archive:
        # The bytes of "a" are the header and the bytes of "b".
        archive.writestr("a", local)
        archive.writestr("b", b"content")
        archive.infolist()[1].header_offset = 31
    with pytest.raises(InputError) as caught:
        read_directory(path)
    assert str(caught.value) == (
        f"{path}!b: shares bytes with a; expected separate bytes for each member. Build or download it again."
    )


def test_a_member_that_overlaps_the_central_directory_is_refused(tmp_path: Path) -> None:
    def lengthen(content: bytearray, local: int, central: int) -> None:
        content[local + 18 : local + 26] = content[central + 20 : central + 28] = (20).to_bytes(4, "little") * 2

    path = write(tmp_path / "a.zip", method=zipfile.ZIP_STORED, a=b"content")
    assert damage(path, lengthen) == (
        f"{path}: is a damaged archive (a overlaps the central directory). Build or download it again."
    )


def test_an_offset_past_the_end_of_the_file_is_refused(tmp_path: Path) -> None:
    def move(content: bytearray, _local: int, central: int) -> None:
        # The extra field of ZIP64 holds what has no room in the entry (APPNOTE.TXT, 4.5.3).
        content[central + 47 : central + 47] = struct.pack("<2HQ", 1, 8, 1 << 63)
        content[central + 30 : central + 32] = (12).to_bytes(2, "little")
        content[central + 42 : central + 46] = b"\xff" * 4
        end = content.find(b"PK\5\6")
        content[end + 12 : end + 16] = (end - central).to_bytes(4, "little")

    path = write(tmp_path / "a.zip", a=b"content")
    assert damage(path, move).startswith(f"{path}: is a damaged archive (")


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.zip")
    with pytest.raises(InputError, match=r"a\.zip: can't be read \(it isn't a regular file\)"):
        read_directory(tmp_path / "a.zip")


def test_a_disk_error_is_not_reported_as_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard library calls whatever it can't read no ZIP archive."""
    path = write(tmp_path / "a.whl", a=b"a")

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(zipfile, "_EndRecData", fail)
    with pytest.raises(InputError) as caught:
        read_directory(path)
    assert str(caught.value) == f"{path}: can't be read (Input/output error). Check whether it exists and is readable."


def test_reading_continues_after_a_short_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.whl", first=b"one", second=b"two")
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, offset: pread(file, max(size // 2, 1), offset))
    assert [member.name for member in read_directory(path)] == ["first", "second"]
