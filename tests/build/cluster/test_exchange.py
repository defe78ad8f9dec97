"""Tests of `rocwheel.build.cluster.exchange`."""

from __future__ import annotations

import shutil
import threading
from typing import TYPE_CHECKING

import pytest

from rocwheel.build.cluster.exchange import CHUNK, Exchange, Staging, on_worker
from rocwheel.build.members import PlacedMember
from rocwheel.build.plan import FileMember, TarEntry, TarMember, TextMember
from rocwheel.core.errors import WorkError
from rocwheel.core.reading import ChangedFileError, FileRange, FileStamp

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.build.plan import Member


@pytest.fixture
def exchange(tmp_path: Path) -> Exchange:
    (tmp_path / "exchange/pieces").mkdir(parents=True)
    return Exchange(str(tmp_path / "exchange"))


def placed(source: FileRange) -> PlacedMember:
    return PlacedMember("lib/a", 0o755, FileMember("lib/a", 0o755, source, "base", "lib/a"))


def source_of(member: PlacedMember) -> FileRange:
    read = on_worker(member).member
    assert isinstance(read, FileMember)
    return read.source


def make(path: Path, data: bytes) -> FileRange:
    path.write_bytes(data)
    return FileRange.whole(path)


@pytest.mark.parametrize("size", [1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 5])
def test_any_range_of_a_staged_file_can_be_read(size: int, exchange: Exchange, tmp_path: Path) -> None:
    data = bytes(range(251)) * (size // 251 + 1)
    original = make(tmp_path / "file", data[:size])
    (member,) = Staging(exchange, all_files=True).place((placed(original),))
    original_data = data[:size]
    (tmp_path / "file").unlink()
    source = source_of(member)
    assert source.read() == original_data
    for start, stop in ((0, 1), (size // 2, size), (max(CHUNK - 3, 0), min(CHUNK + 3, size))):
        if start < stop <= size:
            assert source.part(start, stop).read() == original_data[start:stop]


def test_small_files_share_an_object_and_an_empty_file_has_none(exchange: Exchange, tmp_path: Path) -> None:
    files = [make(tmp_path / str(number), str(number).encode() * number) for number in range(4)]
    members = Staging(exchange, all_files=True).place(tuple(map(placed, files)))
    assert [source_of(member).read() for member in members] == [b"", b"1", b"22", b"333"]
    assert len({source_of(member).path for member in members[1:]}) == 1


def test_a_file_shared_with_workers_keeps_only_its_portable_facts(exchange: Exchange, tmp_path: Path) -> None:
    original = make(tmp_path / "file", b"data")
    (member,) = Staging(exchange, all_files=False).place((placed(original),))
    assert source_of(member) == original.for_any_machine()
    assert not (tmp_path / "exchange/inputs").exists()


def test_a_range_of_an_unnamed_file_is_staged(exchange: Exchange, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"..data..")
    original = FileRange(str(tmp_path / "file"), 2, 4)
    (member,) = Staging(exchange, all_files=False).place((placed(original),))
    (tmp_path / "file").unlink()
    assert source_of(member).read() == b"data"


def test_a_stored_member_is_loaded_unchanged(exchange: Exchange, tmp_path: Path) -> None:
    file = placed(make(tmp_path / "file", b"data")).member
    assert isinstance(file, FileMember)
    tar = TarMember("devel.tar", "xz", (TarEntry("a", 0o644, file), TarEntry("b", 0o777, link="a")))
    members: tuple[Member, ...] = (file, tar, TextMember("t", "text"))
    for number, member in enumerate(members):
        one = PlacedMember("name", 0o644, member)
        assert exchange.load_member(exchange.put_member(7, number, one)) == one


@pytest.mark.parametrize("data", [b"", b"\x81\xa1a\x01", b"\x81\xa1\xffa", b"\x91" * 3000])
def test_a_damaged_member_is_refused_with_its_path(exchange: Exchange, data: bytes) -> None:
    exchange.store().put("members/7-0", data, create=True)
    with pytest.raises(WorkError, match=r"exchange/members/7-0: is not the member that the build stored"):
        exchange.load_member("members/7-0")


def test_a_shared_file_that_was_replaced_is_refused(exchange: Exchange, tmp_path: Path) -> None:
    shared = make(tmp_path / "file", b"data").for_any_machine()
    (tmp_path / "other").write_bytes(b"other data")
    (tmp_path / "other").replace(tmp_path / "file")
    with pytest.raises(ChangedFileError, match="changed from 4 to 10 bytes"):
        shared.read()


def test_a_copy_with_the_same_size_and_time_is_accepted_on_any_machine(tmp_path: Path) -> None:
    original = make(tmp_path / "file", b"data")
    shutil.copy2(tmp_path / "file", tmp_path / "copy")
    (tmp_path / "copy").replace(tmp_path / "file")
    assert original.for_any_machine().read() == b"data"
    with pytest.raises(ChangedFileError):
        original.read()


def test_a_worker_does_not_recreate_the_removed_folder_of_a_build(exchange: Exchange, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "exchange")
    with pytest.raises(WorkError, match="No such file or directory"), exchange.new_piece():
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_worker_can_read_files_of_several_builds_in_turn(tmp_path: Path) -> None:
    for number in range(5):
        made = Exchange(str(tmp_path / f"inputs/{number}"))
        source = FileRange(made.input_path(1, 4), 0, 4, FileStamp(0, 0, 0, 0, 0, 1))
        made.put_chunk(source.path, 0, b"dat%d" % number)
        assert source_of(placed(source)).read() == b"dat%d" % number


def test_many_small_files_are_staged_in_linear_time(exchange: Exchange, tmp_path: Path) -> None:
    file = make(tmp_path / "file", bytes(20_000))
    parts = [file.part(start, start + 10) for start in range(0, 20_000, 10)]
    members = Staging(exchange, all_files=True).place(tuple(map(placed, parts)))
    assert [source_of(member).offset for member in members] == list(range(0, 20_000, 10))
    assert len(list((tmp_path / "exchange/inputs").glob("*/*"))) == 1


def test_exactly_two_chunks_are_transferred_at_a_time(
    exchange: Exchange, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both wait for one another: one at a time would wait for ever."""
    together = threading.Barrier(2)
    lock, now, most = threading.Lock(), 0, 0

    def put(*_: object) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        together.wait(timeout=20)
        with lock:
            now -= 1

    monkeypatch.setattr(Exchange, "put_chunk", put)
    with (tmp_path / "file").open("wb") as file:
        file.truncate(6 * CHUNK)
    Staging(exchange, all_files=True).place((placed(FileRange.whole(tmp_path / "file")),))
    assert (most, now) == (2, 0)


def test_a_failed_transfer_is_reported(exchange: Exchange, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        source, found = "s3://bucket", "is full"
        raise WorkError(source, found)

    monkeypatch.setattr(Exchange, "put_chunk", fail)
    with pytest.raises(WorkError, match="s3://bucket: is full"):
        Staging(exchange, all_files=True).place((placed(make(tmp_path / "file", b"data")),))
