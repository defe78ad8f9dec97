"""Reading of archives that other programs wrote, whole and damaged."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError, WorkError
from rocwheel.distributions.zip import reader
from rocwheel.distributions.zip.directory import read_directory
from rocwheel.distributions.zip.reader import ZipMember, digest_member, iter_member, open_unpacked, read_member

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
        "Build or download it again."
    )


def test_a_damaged_deflated_member_is_found(tmp_path: Path) -> None:
    member = only(write(tmp_path / "a.zip", a=TEXT))
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[member.packed.offset + 2 : member.packed.offset + 40] = os.urandom(38)
    (tmp_path / "a.zip").write_bytes(data)
    member = only(tmp_path / "a.zip")
    with pytest.raises(InputError, match=r"a\.zip!a: .*Build or download it again\."):
        list(iter_member(member))


@pytest.mark.parametrize("size", [3_000_000, 12_000_000], ids=["one piece", "several pieces"])
def test_a_large_member_is_unpacked_by_two_threads_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    data = (NOISE + TEXT) * 2
    monkeypatch.setattr(reader, "_TAKEN_BESIDE", 1)
    [member] = read_directory(write(tmp_path / "a.zip", a=data[:size]))
    with open_unpacked(member) as (unpacked, digest):
        assert unpacked.read() == data[:size]
        assert digest.sha256 == hashlib.sha256(data[:size]).digest()


@pytest.mark.parametrize("taken", [0, 1, 2], ids=["the first piece", "the second piece", "the last piece"])
def test_a_full_disk_is_told_of_a_large_member_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    room = [True] * taken

    def full(*_: object) -> None:
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        room.pop()

    monkeypatch.setattr(reader, "_TAKEN_BESIDE", 1)
    monkeypatch.setattr(reader, "write_all", full)
    [member] = read_directory(write(tmp_path / "a.zip", a=NOISE))
    with pytest.raises(WorkError, match="No space left on device"), open_unpacked(member):
        pass
