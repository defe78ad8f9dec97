"""Ranges of files, mapped or whole."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.reading.file_range import FileRange
from rocwheel.foundation.files.reading.file_stamp import FileStamp
from rocwheel.foundation.files.reading.file_view import load
from rocwheel.foundation.files.reading.mapped_range import release_pages
from rocwheel.foundation.files.reading.regular_files import open_regular
from tests.support.processes import NOBODY, needs_root, run_python

if TYPE_CHECKING:
    from pathlib import Path

PAGE = 4096


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "pages"
    path.write_bytes(b"".join(number.to_bytes(4, "little") for number in range(5 * PAGE // 4)))
    return path


def test_the_whole_of_a_file_has_its_size(tmp_path: Path) -> None:
    path = tmp_path / "libamdhip64.so.5"
    path.write_bytes(b"0123456789")
    assert FileRange.whole(path) == FileRange(str(path), 0, 10, FileStamp.of(path.stat()))


def test_a_part_counts_from_the_beginning_of_its_range() -> None:
    assert FileRange("a.tar", 512, 100).part(10, 30) == FileRange("a.tar", 522, 20)


def test_a_missing_file_is_unreadable_input(tmp_path: Path) -> None:
    path = tmp_path / "none"
    text = f"{path}: can't be read (No such file or directory). Check that it exists and may be read."
    with pytest.raises(InputError, match=f"^{re.escape(text)}$"):
        FileRange.whole(path)


def test_a_file_that_vanished_is_unreadable_input(tmp_path: Path) -> None:
    path = tmp_path / "none"
    text = f"{path}: can't be read (No such file or directory). Check that it exists and may be read."
    with pytest.raises(InputError, match=f"^{re.escape(text)}$"), FileRange(str(path), 0, 1).view():
        pass


def test_a_file_that_shrank_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shrunk"
    path.write_bytes(bytes(100))
    source = FileRange.whole(path)
    path.write_bytes(bytes(99))
    text = (
        f"{path}: changed from 100 to 99 bytes while it was being read. "
        "Leave the inputs alone until the work is done, and run it again."
    )
    with pytest.raises(InputError, match=f"^{re.escape(text)}$"), source.view():
        pass


@pytest.mark.parametrize(("start", "size"), [(0, 0), (3, 100), (0, 256 << 10), (5, 600 << 10)])
def test_a_range_is_fed_piece_by_piece(start: int, size: int, tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(os.urandom(700 << 10))
    fed: list[bytes] = []
    FileRange.whole(path).part(start, start + size).feed(lambda piece: fed.append(bytes(piece)))
    assert b"".join(fed) == path.read_bytes()[start : start + size]


def test_a_file_that_ends_while_it_is_fed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shrunk"
    path.write_bytes(bytes(300 << 10))
    text = f"{path}: ends at byte 307200 of 409600 that it was to have."
    with pytest.raises(InputError, match=re.escape(text)):
        FileRange(str(path), 0, 400 << 10).feed(lambda _: None)


def test_a_folder_cannot_be_viewed(tmp_path: Path) -> None:
    text = f"{tmp_path}: can't be read (Is a directory). Name a file, not a folder."
    with pytest.raises(InputError, match=f"^{re.escape(text)}$"), FileRange.whole(tmp_path).view():
        pass


@needs_root
def test_a_file_without_permission_is_unreadable_input(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"x")
    path.chmod(0)
    program = """
import os, sys
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.reading.file_stamp import FileStamp
from rocwheel.foundation.files.reading.file_range import FileRange
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
        "secret: can't be read (Permission denied). Check that it exists and may be read.\n"
    )


def test_an_empty_range_needs_no_mapping(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    with FileRange.whole(path).view() as view:
        assert bytes(view) == b""


@given(start=st.integers(0, 5 * PAGE), size=st.integers(0, 5 * PAGE))
def test_any_range_gives_its_bytes(start: int, size: int, pages: Path) -> None:
    content = pages.read_bytes()
    stop = min(start + size, len(content))
    with FileRange(str(pages), start, stop - start).view() as view:
        assert bytes(view) == content[start:stop]


def test_a_view_outlives_the_block(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"device code")
    with FileRange.whole(path).view() as view:
        kept = view[7:]
    assert bytes(kept) == b"code"


def test_what_was_read_of_a_large_nameless_file_does_not_stay_resident(tmp_path: Path) -> None:
    """Nobody else can write it: it is mapped, and its pages are let go of, or they would count as resident."""
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(256 << 20)
    program = """
import sys, time, zlib
from pathlib import Path
from rocwheel.foundation.files.reading.file_stamp import FileStamp
from rocwheel.foundation.files.reading.file_range import FileRange
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


def test_a_part_of_a_mapped_file_reads_the_same_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"ab" * PAGE)
    with FileRange(str(path), 0, 2 * PAGE).view() as data:
        view = load(data)
        part = view[1:5]
        release_pages(part)
        assert bytes(part) == b"baba"


def test_bytes_in_memory_are_left_alone() -> None:
    data = memoryview(b"abc")
    release_pages(data)
    assert bytes(data) == b"abc"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="it is not a regular file"):
        open_regular(pipe)
