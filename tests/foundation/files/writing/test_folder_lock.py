"""One process at a time in a folder."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.foundation.errors import WorkError
from rocwheel.foundation.files.writing.folder_lock import locked_folder

if TYPE_CHECKING:
    from pathlib import Path

WAITING = "{}: is being written by another run; waiting for its end"

HOLDING = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_folder_that_another_process_holds_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(WorkError) as refused, locked_folder(tmp_path, patience=0.2):
            pass
        holder.stdin.close()
        with locked_folder(tmp_path):
            pass
    expected = f"{tmp_path}: is still being written by another run. Wait for its end, and run it again."
    assert str(refused.value) == expected
    assert caplog.messages[0] == WAITING.format(tmp_path)


def test_a_lock_ends_with_its_block(tmp_path: Path) -> None:
    for _ in range(2):
        with locked_folder(tmp_path, patience=0):
            pass


def test_a_folder_is_made_and_does_not_stay_empty(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with locked_folder(folder):
        assert folder.is_dir()
    assert not folder.exists()
    with locked_folder(folder):
        (folder / "file").touch()
    assert folder.is_dir()


def test_a_folder_that_was_removed_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, lock, removals = tmp_path / "a", fcntl.flock, iter([True])

    def removing(descriptor: int, operation: int) -> None:
        lock(descriptor, operation)
        if next(removals, False):
            folder.rmdir()

    monkeypatch.setattr(fcntl, "flock", removing)
    with locked_folder(folder, patience=0):
        assert folder.is_dir()


def test_a_file_system_without_locks_is_told_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with caplog.at_level(logging.WARNING), locked_folder(tmp_path / "a"):
        (tmp_path / "a" / "file").touch()
    text = "can't be locked (No locks available), so let no two runs write it at the same time"
    assert caplog.messages == [f"{tmp_path / 'a'}: {text}"]


def test_a_folder_that_can_not_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(WorkError, match=re.escape(f"{tmp_path / 'a/b'}: ")), locked_folder(tmp_path / "a/b"):
        pass
