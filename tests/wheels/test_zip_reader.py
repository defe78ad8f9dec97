"""Tests of `rocwheel.wheels.zip_reader`."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import zipfile
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError, WorkError
from rocwheel.wheels import zip_reader
from rocwheel.wheels.zip_directory import read_directory
from rocwheel.wheels.zip_reader import (
    UnpackedMembers,
    ZipMember,
    digest_member,
    iter_member,
    open_unpacked,
    read_member,
)
from tests.support.wheels import pack_members

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.wheels.zip_reader import ZipMember


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
def test_members_are_read_unchanged(tmp_path: Path, method: int, data: bytes) -> None:
    member = only(write(tmp_path / "a.zip", method=method, a=data))
    assert (member.name, member.method, member.size) == ("a", method, len(data))
    assert read_member(member) == data
    assert digest_member(member).sha256 == hashlib.sha256(data).digest()
    with open_unpacked(member) as (unpacked, digest), unpacked.view() as view:
        assert bytes(view) == data
        assert digest.sha256 == hashlib.sha256(data).digest()


@given(st.binary(max_size=5000))
def test_any_content_round_trips(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    assert read_member(only(write(tmp_path_factory.mktemp("zip") / "a.zip", a=data))) == data


def test_packed_bytes_are_a_range_of_the_archive(tmp_path: Path) -> None:
    member = only(write(tmp_path / "a.zip", method=zipfile.ZIP_STORED, a=b"content"))
    assert (tmp_path / "a.zip").read_bytes()[member.packed.offset :].startswith(b"content")


@pytest.mark.parametrize(
    ("name", "most"),
    [("METADATA", 2 << 20), ("RECORD", 16 << 20), ("WHEEL", 256 << 10), ("entry_points.txt", 256 << 10)],
)
def test_a_text_far_larger_than_in_published_wheels_is_refused(tmp_path: Path, name: str, most: int) -> None:
    path = f"a-1.dist-info/{name}"
    (tmp_path / "larger").mkdir()
    assert len(read_member(only(pack_members(tmp_path / "a.whl", {path: bytes(most)})))) == most
    with pytest.raises(InputError) as error:
        read_member(only(pack_members(tmp_path / "larger/a.whl", {path: bytes(most + 1)})))
    assert str(error.value) == (
        f"{tmp_path}/larger/a.whl!{path}: has {most + 1} bytes; expected at most {most} bytes for this file type. "
        "Build or download the wheel again."
    )


def test_a_damaged_stored_member_is_detected_by_its_checksum(tmp_path: Path) -> None:
    member = only(write(tmp_path / "a.zip", method=zipfile.ZIP_STORED, a=b"content"))
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[member.packed.offset] ^= 1
    (tmp_path / "a.zip").write_bytes(data)
    member = only(tmp_path / "a.zip")
    with pytest.raises(InputError) as error:
        list(iter_member(member))
    assert str(error.value) == (
        f"{tmp_path}/a.zip!a: has 7 bytes with checksum 58b23b1d; expected 7 bytes with checksum {member.crc32:08x}. "
        "Build or download it again."
    )


def test_a_damaged_deflated_member_is_detected(tmp_path: Path) -> None:
    member = only(write(tmp_path / "a.zip", a=TEXT))
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[member.packed.offset + 2 : member.packed.offset + 40] = os.urandom(38)
    (tmp_path / "a.zip").write_bytes(data)
    member = only(tmp_path / "a.zip")
    with pytest.raises(InputError, match=r"a\.zip!a: .*Build or download it again\."):
        list(iter_member(member))


@pytest.mark.parametrize("size", [3_000_000, 12_000_000], ids=["one piece", "several pieces"])
def test_two_threads_unpack_a_large_member_identically(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    data = (NOISE + TEXT) * 2
    monkeypatch.setattr(zip_reader, "_TAKEN_BESIDE", 1)
    [member] = read_directory(write(tmp_path / "a.zip", a=data[:size]))
    with open_unpacked(member) as (unpacked, digest):
        assert unpacked.read() == data[:size]
        assert digest.sha256 == hashlib.sha256(data[:size]).digest()


@pytest.mark.parametrize("taken", [0, 1, 2], ids=["the first piece", "the second piece", "the last piece"])
def test_a_full_disk_is_reported_for_a_large_member_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    room = [True] * taken

    def full(*_: object) -> None:
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        room.pop()

    monkeypatch.setattr(zip_reader, "_TAKEN_BESIDE", 1)
    monkeypatch.setattr(zip_reader, "write_all", full)
    [member] = read_directory(write(tmp_path / "a.zip", a=NOISE))
    with pytest.raises(WorkError, match="No space left on device"), open_unpacked(member):
        pass


UNPACKED_NOISE = random.Random(7).randbytes(3000)


def archive_of(path: Path, **contents: bytes) -> list[ZipMember]:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return list(read_directory(path))


def opened(unpacked: UnpackedMembers, member: ZipMember) -> bytes:
    with unpacked.open(member) as (found, _):
        return found.read()


def test_an_opened_member_is_kept_with_its_bytes_and_digest(tmp_path: Path) -> None:
    [member] = archive_of(tmp_path / "a.whl", a=UNPACKED_NOISE)
    with closing(UnpackedMembers(least=1000)) as unpacked:
        assert unpacked.find(member) is None
        assert opened(unpacked, member) == UNPACKED_NOISE
        found = unpacked.find(member)
        assert found is not None
        assert found.read() == UNPACKED_NOISE
        assert unpacked.digests[member].size == 3000


def test_a_member_is_inflated_once(tmp_path: Path) -> None:
    [member] = archive_of(tmp_path / "a.whl", a=UNPACKED_NOISE)
    with closing(UnpackedMembers(least=1000)) as unpacked:
        first = opened(unpacked, member)
        (tmp_path / "a.whl").unlink()
        assert opened(unpacked, member) == first
        assert unpacked.digest(member).size == 3000


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({"least": 3000}, [True, True, True]),
        ({"least": 3001}, [False, False, False]),
        ({"least": 1, "most": 2}, [True, True, False]),
        ({"least": 1, "most_bytes": 8999}, [True, True, False]),
    ],
    ids=["all", "small ones", "number", "bytes"],
)
def test_members_are_kept_while_there_is_room(tmp_path: Path, limits: dict[str, int], kept: list[bool]) -> None:
    members = archive_of(tmp_path / "a.whl", a=UNPACKED_NOISE, b=UNPACKED_NOISE, c=UNPACKED_NOISE)
    with closing(UnpackedMembers(**limits)) as unpacked:
        assert [opened(unpacked, member) for member in members] == [UNPACKED_NOISE] * 3
        assert [unpacked.find(member) is not None for member in members] == kept


def test_kept_members_take_at_most_half_of_the_free_disk_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = archive_of(tmp_path / "a.whl", a=UNPACKED_NOISE, b=UNPACKED_NOISE, c=UNPACKED_NOISE)
    free = iter([9000, 6000, 3000])
    monkeypatch.setattr("rocwheel.wheels.zip_reader._free_at", lambda _: next(free))
    with closing(UnpackedMembers(least=1)) as unpacked:
        assert [opened(unpacked, member) for member in members] == [UNPACKED_NOISE] * 3
        assert [unpacked.find(member) is not None for member in members] == [True, True, False]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_reading_only_content_inflates_and_hashes_once(tmp_path: Path, method: int) -> None:
    path = tmp_path / "a.whl"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a", UNPACKED_NOISE)
    [member] = read_directory(path)
    with closing(UnpackedMembers(least=1)) as unpacked:
        with unpacked.open_content(member) as content:
            assert content.read() == UNPACKED_NOISE
        assert unpacked.find(member) is not None
        assert unpacked.digests[member].sha256 == hashlib.sha256(UNPACKED_NOISE).digest()


def test_unneeded_members_make_room_for_others(tmp_path: Path) -> None:
    one, other = archive_of(tmp_path / "a.whl", a=UNPACKED_NOISE, b=UNPACKED_NOISE)
    with closing(UnpackedMembers(least=1, most=1)) as unpacked:
        opened(unpacked, one)
        unpacked.keep_only(lambda member: member.name == "b")
        assert unpacked.find(one) is None
        opened(unpacked, other)
        assert unpacked.find(other) is not None


def test_members_of_a_changed_wheel_are_not_found(tmp_path: Path) -> None:
    [before] = archive_of(tmp_path / "a.whl", a=UNPACKED_NOISE)
    with closing(UnpackedMembers(least=1)) as unpacked:
        opened(unpacked, before)
        [after] = archive_of(tmp_path / "a.whl", a=UNPACKED_NOISE[::-1])
        assert unpacked.find(after) is None
        assert opened(unpacked, after) == UNPACKED_NOISE[::-1]


def test_a_damaged_member_is_not_kept(tmp_path: Path) -> None:
    [member] = archive_of(tmp_path / "a.whl", a=UNPACKED_NOISE)
    data = bytearray((tmp_path / "a.whl").read_bytes())
    data[member.packed.offset + 40] ^= 0xFF
    (tmp_path / "a.whl").write_bytes(data)
    [member] = read_directory(tmp_path / "a.whl")
    with closing(UnpackedMembers(least=1)) as unpacked:
        with pytest.raises(InputError):
            opened(unpacked, member)
        assert unpacked.find(member) is None
        assert member not in unpacked.digests
