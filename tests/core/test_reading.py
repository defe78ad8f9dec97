"""Tests of `rocwheel.core.reading`."""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core import reading
from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.reading import (
    ChangedFileError,
    FileRange,
    FileStamp,
    load,
    open_regular,
    open_unchanged,
    read_if_readable,
    read_regular,
    read_small,
    release_pages,
    unchanged,
)
from tests.support.changing_files import CHANGES, changed_at_read
from tests.support.processes import NOBODY, needs_root, run_python

if TYPE_CHECKING:
    from pathlib import Path


WAYS = {
    "overwritten": "changed while it was being read",
    "truncated": "changed from 1000 to 500 bytes while it was being read",
    "replaced": "was replaced by another file while it was being read",
}
REMEDY = "Run the command again, and don't change its inputs while it runs."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "libamdhip64.so.7"
    path.write_bytes(b"x" * 1000)
    os.utime(path, (1, 1))
    return path


@pytest.mark.parametrize("way", WAYS)
def test_a_file_changed_since_it_was_listed_is_refused(path: Path, way: str) -> None:
    source = FileRange.whole(path)
    CHANGES[way](path)
    with pytest.raises(ChangedFileError, match=f"^{re.escape(f'{path}: {WAYS[way]}. {REMEDY}')}$"):
        source.read()


@pytest.mark.parametrize("way", ["overwritten", "truncated"])
def test_a_file_that_changes_during_reading_is_refused(path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changed_at_read(monkeypatch, path, CHANGES[way])
    source = FileRange.whole(path)
    with pytest.raises(ChangedFileError, match=WAYS[way]):
        source.read()


def test_adding_or_removing_a_hard_link_does_not_count_as_a_change(path: Path) -> None:
    source, other = FileRange.whole(path), path.with_name("other")
    other.hardlink_to(path)
    assert source.read() == b"x" * 1000
    source = FileRange.whole(path)
    other.unlink()
    assert source.read() == b"x" * 1000


def test_a_file_removed_while_open_is_refused(path: Path) -> None:
    stamp = FileStamp.at(path)
    with path.open("rb") as file:
        path.unlink()
        with pytest.raises(ChangedFileError, match="was removed or replaced while it was being read"):
            stamp.require(os.fstat(file.fileno()), str(path))


def test_a_file_that_was_modified_and_hard_linked_is_refused(path: Path) -> None:
    source = FileRange.whole(path)
    path.with_name("other").hardlink_to(path)
    CHANGES["overwritten"](path)
    with pytest.raises(ChangedFileError, match=WAYS["overwritten"]):
        source.read()


def test_a_file_whose_permissions_changed_is_refused(path: Path) -> None:
    source = FileRange.whole(path)
    path.chmod(0o600)
    with pytest.raises(ChangedFileError, match=WAYS["overwritten"]):
        source.read()


def test_a_changed_file_results_in_exit_status_1(path: Path) -> None:
    source = FileRange.whole(path)
    CHANGES["truncated"](path)
    with pytest.raises(ChangedFileError) as caught:
        source.read()
    assert caught.value.exit_status == 1


def test_reading_does_not_change_the_stamp(path: Path) -> None:
    stamp = FileStamp.at(path)
    FileRange.whole(path).read()
    assert FileStamp.at(path) == stamp


@pytest.mark.parametrize("way", ["overwritten", "truncated"])
def test_a_file_that_changes_while_streamed_is_refused(path: Path, way: str) -> None:
    with pytest.raises(ChangedFileError, match=WAYS[way]), open_unchanged(path):
        CHANGES[way](path)


def test_damage_caused_by_a_change_is_reported_as_a_change(path: Path) -> None:
    with pytest.raises(ChangedFileError, match=WAYS["truncated"]):
        _find_damage(path)


def _find_damage(path: Path) -> None:
    with open_unchanged(path):
        CHANGES["truncated"](path)
        raise EOFError


def test_damage_in_an_unchanged_file_is_reported_as_damage(path: Path) -> None:
    with pytest.raises(EOFError), open_unchanged(path):
        raise EOFError


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_changes_while_read_by_path_is_refused(path: Path, way: str) -> None:
    with pytest.raises(ChangedFileError, match=WAYS[way]), unchanged(path):
        CHANGES[way](path)


def test_damage_caused_by_a_replaced_file_is_reported_as_a_change(path: Path) -> None:
    with pytest.raises(ChangedFileError, match=WAYS["replaced"]):
        _find_damage_by_path(path)


def _find_damage_by_path(path: Path) -> None:
    with unchanged(path):
        CHANGES["replaced"](path)
        raise EOFError


def test_a_pipe_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it isn't a regular file"):
        read_regular(tmp_path / "pipe")


def test_a_pipe_cannot_be_a_file_range(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="it isn't a regular file"):
        FileRange.whole(tmp_path / "pipe")


def test_a_missing_file_folder_or_pipe_is_read_as_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"abc")
    assert [read_if_readable(tmp_path / name) for name in ("file", "absent", "pipe", "")] == [b"abc", b"", b"", b""]


def test_a_disk_failure_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> bytes:
        raise OSError(errno.EIO, "Input/output error", str(path))

    monkeypatch.setattr(reading, "read_regular", fail)
    with pytest.raises(InputError, match=re.escape("can't be read (Input/output error)")):
        read_if_readable(tmp_path / "file")


def test_too_many_open_files_is_reported_as_a_work_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files", str(path))

    monkeypatch.setattr(reading, "read_regular", fail)
    with pytest.raises(WorkError, match="Allow more open files"):
        read_if_readable(tmp_path / "file")


def test_a_regular_file_larger_than_64_mib_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.touch()
    os.truncate(path, 64 << 20)
    assert len(read_regular(path)) == 64 << 20
    os.truncate(path, (64 << 20) + 1)
    with pytest.raises(OSError, match="it is larger than 64 MiB"):
        read_regular(path)


def test_a_small_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(bytes(1 << 20))
    assert read_small(tmp_path / "list", 1 << 20, expected="a list") == bytes(1 << 20)
    (tmp_path / "list").write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(InputError, match=r"list: is larger than 1 MiB; expected a list$"):
        read_small(tmp_path / "list", 1 << 20, expected="a list")


def test_a_missing_small_file_is_reported(tmp_path: Path) -> None:
    expected = (
        "absent: can't be read (No such file or directory); expected a list. Check whether it exists and is readable."
    )
    with pytest.raises(InputError, match=re.escape(expected)):
        read_small(tmp_path / "absent", 1 << 20, expected="a list")


PAGE = 4096


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "pages"
    path.write_bytes(b"".join(number.to_bytes(4, "little") for number in range(5 * PAGE // 4)))
    return path


def test_whole_covers_the_size_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "libamdhip64.so.5"
    path.write_bytes(b"0123456789")
    assert FileRange.whole(path) == FileRange(str(path), 0, 10, FileStamp.of(path.stat()))


def test_a_part_is_relative_to_the_start_of_its_range() -> None:
    assert FileRange("a.tar", 512, 100).part(10, 30) == FileRange("a.tar", 522, 20)


def test_a_missing_file_is_unreadable_input(tmp_path: Path) -> None:
    path = tmp_path / "none"
    text = f"{path}: can't be read (No such file or directory). Check whether it exists and is readable."
    with pytest.raises(InputError, match=f"^{re.escape(text)}$"):
        FileRange.whole(path)


def test_a_file_deleted_before_viewing_is_unreadable_input(tmp_path: Path) -> None:
    path = tmp_path / "none"
    text = f"{path}: can't be read (No such file or directory). Check whether it exists and is readable."
    with pytest.raises(InputError, match=f"^{re.escape(text)}$"), FileRange(str(path), 0, 1).view():
        pass


def test_a_file_that_shrank_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shrunk"
    path.write_bytes(bytes(100))
    source = FileRange.whole(path)
    path.write_bytes(bytes(99))
    text = (
        f"{path}: changed from 100 to 99 bytes while it was being read. "
        "Run the command again, and don't change its inputs while it runs."
    )
    with pytest.raises(InputError, match=f"^{re.escape(text)}$"), source.view():
        pass


@pytest.mark.parametrize(("start", "size"), [(0, 0), (3, 100), (0, 256 << 10), (5, 600 << 10)])
def test_feed_passes_a_range_piece_by_piece(start: int, size: int, tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(os.urandom(700 << 10))
    fed: list[bytes] = []
    FileRange.whole(path).part(start, start + size).feed(lambda piece: fed.append(bytes(piece)))
    assert b"".join(fed) == path.read_bytes()[start : start + size]


def test_a_file_that_ends_during_feed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shrunk"
    path.write_bytes(bytes(300 << 10))
    text = f"{path}: ends at byte 307200 instead of 409600."
    with pytest.raises(InputError, match=re.escape(text)):
        FileRange(str(path), 0, 400 << 10).feed(lambda _: None)


def test_a_folder_cannot_be_viewed(tmp_path: Path) -> None:
    text = f"{tmp_path}: can't be read (Is a directory). Pass a file instead of a folder."
    with pytest.raises(InputError, match=f"^{re.escape(text)}$"), FileRange.whole(tmp_path).view():
        pass


@needs_root
def test_a_file_without_read_permission_is_unreadable_input(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"x")
    path.chmod(0)
    program = """
import os, sys
from rocwheel.core.errors import InputError
from rocwheel.core.reading import FileStamp
from rocwheel.core.reading import FileRange
descriptor = os.open(os.path.dirname(sys.argv[1]), os.O_RDONLY)
os.fchdir(descriptor)
os.setuid(int(sys.argv[2]))
try:
    with FileRange(os.path.basename(sys.argv[1]), 0, 1).view():
        pass
except InputError as e:
    print(e)
"""
    assert run_python(program, path, str(NOBODY)) == (
        "secret: can't be read (Permission denied). Check whether it exists and is readable.\n"
    )


def test_an_empty_range_can_be_viewed(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    with FileRange.whole(path).view() as view:
        assert bytes(view) == b""


@given(start=st.integers(0, 5 * PAGE), size=st.integers(0, 5 * PAGE))
def test_a_view_has_the_bytes_of_its_range(start: int, size: int, pages: Path) -> None:
    content = pages.read_bytes()
    stop = min(start + size, len(content))
    with FileRange(str(pages), start, stop - start).view() as view:
        assert bytes(view) == content[start:stop]


def test_a_view_can_be_used_after_its_block(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"device code")
    with FileRange.whole(path).view() as view:
        kept = view[7:]
    assert bytes(kept) == b"code"


def test_pages_of_a_large_unnamed_file_do_not_stay_resident(tmp_path: Path) -> None:
    """Nobody else can write it: it is mapped, and its pages are let go of, or they would count as resident."""
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(256 << 20)
    program = """
import sys, time, zlib
from pathlib import Path
from rocwheel.core.reading import FileStamp
from rocwheel.core.reading import FileRange
def mapped_kilobytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssFile:"))
with FileRange(sys.argv[1], 0, 256 << 20).view() as view:
    zlib.crc32(view)
    deadline = time.monotonic() + 60
    while mapped_kilobytes() > 64 << 10 and time.monotonic() < deadline:
        time.sleep(0.01)
    print(mapped_kilobytes() <= 64 << 10)
"""
    assert run_python(program, path) == "True\n"


def test_released_pages_of_a_mapped_file_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"ab" * PAGE)
    with FileRange(str(path), 0, 2 * PAGE).view() as data:
        view = load(data)
        part = view[1:5]
        release_pages(part)
        assert bytes(part) == b"baba"


def test_release_pages_ignores_bytes_in_memory() -> None:
    data = memoryview(b"abc")
    release_pages(data)
    assert bytes(data) == b"abc"


def test_opening_a_pipe_is_refused_without_blocking(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="it isn't a regular file"):
        open_regular(pipe)
