"""Members that are unpacked once for several steps."""

from __future__ import annotations

import hashlib
import random
import zipfile
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.distributions.zip.directory import read_directory
from rocwheel.distributions.zip.unpacked import UnpackedMembers

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.distributions.zip.reader import ZipMember

NOISE = random.Random(7).randbytes(3000)


def archive_of(path: Path, **contents: bytes) -> list[ZipMember]:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return list(read_directory(path))


def opened(unpacked: UnpackedMembers, member: ZipMember) -> bytes:
    with unpacked.open(member) as (found, _):
        return found.read()


def test_a_member_that_was_opened_is_found_with_its_bytes_and_digest(tmp_path: Path) -> None:
    [member] = archive_of(tmp_path / "a.whl", a=NOISE)
    with closing(UnpackedMembers(least=1000)) as unpacked:
        assert unpacked.find(member) is None
        assert opened(unpacked, member) == NOISE
        found = unpacked.find(member)
        assert found is not None
        assert found.read() == NOISE
        assert unpacked.digests[member].size == 3000


def test_a_member_is_inflated_once(tmp_path: Path) -> None:
    [member] = archive_of(tmp_path / "a.whl", a=NOISE)
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
def test_members_are_kept_as_long_as_there_is_room(tmp_path: Path, limits: dict[str, int], kept: list[bool]) -> None:
    members = archive_of(tmp_path / "a.whl", a=NOISE, b=NOISE, c=NOISE)
    with closing(UnpackedMembers(**limits)) as unpacked:
        assert [opened(unpacked, member) for member in members] == [NOISE] * 3
        assert [unpacked.find(member) is not None for member in members] == kept


def test_what_is_kept_takes_half_of_what_is_free_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = archive_of(tmp_path / "a.whl", a=NOISE, b=NOISE, c=NOISE)
    free = iter([9000, 6000, 3000])
    monkeypatch.setattr("rocwheel.distributions.zip.unpacked._free_at", lambda _: next(free))
    with closing(UnpackedMembers(least=1)) as unpacked:
        assert [opened(unpacked, member) for member in members] == [NOISE] * 3
        assert [unpacked.find(member) is not None for member in members] == [True, True, False]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_content_alone_is_inflated_and_hashed_once(tmp_path: Path, method: int) -> None:
    path = tmp_path / "a.whl"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a", NOISE)
    [member] = read_directory(path)
    with closing(UnpackedMembers(least=1)) as unpacked:
        with unpacked.open_content(member) as content:
            assert content.read() == NOISE
        assert unpacked.find(member) is not None
        assert unpacked.digests[member].sha256 == hashlib.sha256(NOISE).digest()


def test_members_that_nobody_wants_make_room_for_others(tmp_path: Path) -> None:
    one, other = archive_of(tmp_path / "a.whl", a=NOISE, b=NOISE)
    with closing(UnpackedMembers(least=1, most=1)) as unpacked:
        opened(unpacked, one)
        unpacked.keep_only(lambda member: member.name == "b")
        assert unpacked.find(one) is None
        opened(unpacked, other)
        assert unpacked.find(other) is not None


def test_nothing_is_found_of_a_wheel_that_changed(tmp_path: Path) -> None:
    [before] = archive_of(tmp_path / "a.whl", a=NOISE)
    with closing(UnpackedMembers(least=1)) as unpacked:
        opened(unpacked, before)
        [after] = archive_of(tmp_path / "a.whl", a=NOISE[::-1])
        assert unpacked.find(after) is None
        assert opened(unpacked, after) == NOISE[::-1]


def test_a_damaged_member_is_not_kept(tmp_path: Path) -> None:
    [member] = archive_of(tmp_path / "a.whl", a=NOISE)
    data = bytearray((tmp_path / "a.whl").read_bytes())
    data[member.packed.offset + 40] ^= 0xFF
    (tmp_path / "a.whl").write_bytes(data)
    [member] = read_directory(tmp_path / "a.whl")
    with closing(UnpackedMembers(least=1)) as unpacked:
        with pytest.raises(InputError):
            opened(unpacked, member)
        assert unpacked.find(member) is None
        assert member not in unpacked.digests
