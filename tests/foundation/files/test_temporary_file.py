"""Temporary files without a name, and the folder they are in."""

from __future__ import annotations

import errno
import os
import re
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest

from rocwheel.foundation.errors import WorkError
from rocwheel.foundation.files.temporary_file import (
    no_room,
    open_temporary,
    path_of,
    range_error,
    require_room,
    write_all,
)


def test_file_is_in_the_folder_of_tmpdir_and_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with open_temporary() as file:
        assert list(tmp_path.iterdir()) == []
        assert Path(path_of(file)).readlink().parent == tmp_path
        assert os.fstat(file.fileno()).st_nlink == 0


def test_named_folder_goes_before_tmpdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    with open_temporary(tmp_path) as file:
        assert Path(path_of(file)).readlink().parent == tmp_path


def test_whatever_is_written_can_be_read_by_its_path(tmp_path: Path) -> None:
    with open_temporary(tmp_path) as file:
        write_all(file, b"abc")
        assert Path(path_of(file)).read_bytes() == b"abc"


def test_unusable_tmpdir_is_refused_whatever_the_file_is_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    message = f"TMPDIR: names {tmp_path}/none, where no file can be made. Correct or unset it."
    with (
        pytest.raises(WorkError, match=f"^{re.escape(message)}$"),
        open_temporary(),
    ):
        pass


def test_full_folder_is_named_with_what_did_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert str(no_room("x.whl!a", "its 5 bytes", OSError(errno.ENOSPC, "No space left on device"))) == (
        f"x.whl!a: its 5 bytes can't be written to {tmp_path} (No space left on device). "
        "Make room there, or set TMPDIR to another folder."
    )


@pytest.mark.parametrize(("size", "is_enough"), [(63 << 20, True), (80 << 20, True), (90 << 20, False)])
def test_much_is_not_written_where_it_would_fill_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, is_enough: bool
) -> None:
    free = SimpleNamespace(f_bavail=150 << 10, f_frsize=1 << 10)
    monkeypatch.setattr(os, "fstatvfs", lambda _: free)
    with open_temporary(tmp_path) as file, nullcontext() if is_enough else pytest.raises(OSError, match="No space"):
        require_room(file, size)


def test_a_temporary_file_that_cannot_be_read_is_called_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    error = OSError(errno.EIO, "Input/output error")
    with open_temporary() as file:
        assert str(range_error(path_of(file), error)) == (
            f"{tmp_path}: a temporary file can't be read (Input/output error). "
            "Check its disk, or set TMPDIR to another folder."
        )
    assert str(range_error("a.whl", error)) == (
        "a.whl: can't be read (Input/output error). Check that it exists and may be read."
    )


def refuse_at_close(file: IO[bytes]) -> None:
    """Have the system refuse to close a file, as a disk that only then tells of bytes that it has not taken."""
    os.close(file.fileno())


@pytest.mark.parametrize("buffering", [0, -1, 1 << 20])
def test_a_file_that_cannot_be_closed_hides_no_error_that_is_on_its_way(tmp_path: Path, buffering: int) -> None:
    def fail() -> None:
        with open_temporary(tmp_path, buffering=buffering) as file:
            refuse_at_close(file)
            msg = "the first"
            raise ValueError(msg)

    with pytest.raises(ValueError, match="the first"):
        fail()


@pytest.mark.parametrize("buffering", [0, -1, 1 << 20])
def test_a_file_that_cannot_be_closed_is_told_with_its_folder(tmp_path: Path, buffering: int) -> None:
    expected = (
        f"{tmp_path}: a temporary file can't be written (Bad file descriptor). "
        "Check its disk, or set TMPDIR to another folder."
    )
    with pytest.raises(WorkError, match=f"^{re.escape(expected)}$"), open_temporary(tmp_path, buffering=buffering) as f:
        refuse_at_close(f)


@pytest.mark.parametrize(("buffering", "is_there"), [(0, True), (-1, False), (4, True)])
def test_a_file_is_buffered_as_it_was_asked_for(tmp_path: Path, buffering: int, is_there: bool) -> None:
    with open_temporary(tmp_path, buffering=buffering) as file:
        file.write(b"abcdef")
        assert Path(path_of(file)).read_bytes() == (b"abcdef" if is_there else b"")
        file.flush()
        assert Path(path_of(file)).read_bytes() == b"abcdef"
