"""Reading of archives that other programs wrote, whole and damaged."""

from __future__ import annotations

import hashlib
import os
import random
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.distributions.zip.reader import (
    ZipMember,
    digest_member,
    iter_member,
    open_unpacked,
    read_directory,
    read_member,
)
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

NOISE = random.Random(7).randbytes(3_000_000)
TEXT = b"the same words, again and again\n" * 100_000


def write(path: Path, *, method: int = zipfile.ZIP_DEFLATED, **contents: bytes) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return path


def only(path: Path) -> ZipMember:
    (member,) = read_directory(path)
    return member


@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE], ids=["empty", "one byte", "text", "noise"])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_members_are_read_as_they_were_written(tmp_path: Path, method: int, data: bytes) -> None:
    member = only(write(tmp_path / "a.zip", method=method, a=data))
    assert (member.name, member.method, member.size) == ("a", method, len(data))
    assert read_member(member) == data
    assert digest_member(member).sha256 == hashlib.sha256(data).digest()
    with open_unpacked(member) as (unpacked, digest), unpacked.view() as view:
        assert bytes(view) == data
        assert digest.sha256 == hashlib.sha256(data).digest()


@given(st.binary(max_size=5000))
def test_any_content_comes_back(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    assert read_member(only(write(tmp_path_factory.mktemp("zip") / "a.zip", a=data))) == data


def test_packed_bytes_are_a_range_of_the_archive(tmp_path: Path) -> None:
    member = only(write(tmp_path / "a.zip", method=zipfile.ZIP_STORED, a=b"content"))
    assert (tmp_path / "a.zip").read_bytes()[member.packed.offset :].startswith(b"content")


def test_modes_are_those_of_unix_or_none(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        tool = zipfile.ZipInfo("tool")
        tool.external_attr = 0o100755 << 16
        archive.writestr(tool, b"")
        archive.writestr(zipfile.ZipInfo("plain"), b"")
        archive.writestr("folder/", b"")
    found = [(member.name, member.mode) for member in read_directory(tmp_path / "a.zip")]
    assert found == [("tool", 0o100755), ("plain", 0o600)]


def test_a_damaged_stored_member_is_found_by_its_checksum(tmp_path: Path) -> None:
    member = only(write(tmp_path / "a.zip", method=zipfile.ZIP_STORED, a=b"content"))
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[member.packed.offset] ^= 1
    (tmp_path / "a.zip").write_bytes(data)
    member = only(tmp_path / "a.zip")
    with pytest.raises(InputError) as error:
        list(iter_member(member))
    assert str(error.value) == (
        f"{tmp_path}/a.zip!a: 7 bytes with checksum 58b23b1d; expected 7 with {member.crc32:08x}. "
        "It is damaged: build or download it again."
    )


def test_a_damaged_deflated_member_is_found(tmp_path: Path) -> None:
    member = only(write(tmp_path / "a.zip", a=TEXT))
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[member.packed.offset + 2 : member.packed.offset + 40] = os.urandom(38)
    (tmp_path / "a.zip").write_bytes(data)
    member = only(tmp_path / "a.zip")
    with pytest.raises(InputError, match=r"a\.zip!a: .*It is damaged: build or download it again\."):
        list(iter_member(member))


@pytest.mark.parametrize("keep", [0, 10, 60], ids=["empty", "start", "no end"])
def test_what_is_not_a_whole_archive_is_refused(tmp_path: Path, keep: int) -> None:
    path = write(tmp_path / "a.zip", a=b"content")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(
        InputError, match=r"a damaged archive \(File is not a zip file\)\. Build or download it again\."
    ):
        read_directory(path)


def test_a_method_that_installers_do_not_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_directory(write(tmp_path / "a.zip", method=zipfile.ZIP_LZMA, a=b"content"))
    assert str(error.value) == (
        f"{tmp_path}/a.zip!a: packed by method 14; expected a stored or deflated member, as installers read"
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
