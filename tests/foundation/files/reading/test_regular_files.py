"""Reading of files that must be regular."""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.foundation.errors import InputError, WorkError
from rocwheel.foundation.files.reading import regular_files
from rocwheel.foundation.files.reading.regular_files import read_if_readable, read_regular, read_small

if TYPE_CHECKING:
    from pathlib import Path


def test_a_pipe_is_refused_as_opening_it_would_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is not a regular file"):
        read_regular(tmp_path / "pipe")


def test_what_is_absent_a_folder_or_a_pipe_is_read_as_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"abc")
    assert [read_if_readable(tmp_path / name) for name in ("file", "absent", "pipe", "")] == [b"abc", b"", b"", b""]


def test_a_failing_disk_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> bytes:
        raise OSError(errno.EIO, "Input/output error", str(path))

    monkeypatch.setattr(regular_files, "read_regular", fail)
    with pytest.raises(InputError, match=re.escape("can't be read (Input/output error)")):
        read_if_readable(tmp_path / "file")


def test_too_many_open_files_are_told_of_as_failed_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files", str(path))

    monkeypatch.setattr(regular_files, "read_regular", fail)
    with pytest.raises(WorkError, match="Allow more open files"):
        read_if_readable(tmp_path / "file")


def test_no_text_of_a_user_is_larger_than_64_mib(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.touch()
    os.truncate(path, 64 << 20)
    assert len(read_regular(path)) == 64 << 20
    os.truncate(path, (64 << 20) + 1)
    with pytest.raises(OSError, match="it is larger than 64 MiB"):
        read_regular(path)


def test_a_file_that_should_be_small_is_read_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(bytes(1 << 20))
    assert read_small(tmp_path / "list", 1 << 20, expected="a list") == bytes(1 << 20)
    (tmp_path / "list").write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(InputError, match=r"list: is larger than 1 MiB; expected a list$"):
        read_small(tmp_path / "list", 1 << 20, expected="a list")


def test_a_file_that_should_be_small_and_is_not_there_is_told_of(tmp_path: Path) -> None:
    expected = (
        "absent: can't be read (No such file or directory); expected a list. Check that it exists and may be read."
    )
    with pytest.raises(InputError, match=re.escape(expected)):
        read_small(tmp_path / "absent", 1 << 20, expected="a list")
