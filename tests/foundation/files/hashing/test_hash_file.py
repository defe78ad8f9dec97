"""Hashes of files on disk."""

from __future__ import annotations

import hashlib
import io
import os
from typing import TYPE_CHECKING

import pytest

from rocwheel.foundation.files.hashing.hash_file import hash_file, hash_rest

if TYPE_CHECKING:
    from pathlib import Path

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
"""FIPS 180-2, B.1."""


def test_the_hash_of_a_file_is_its_sha_256(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert hash_file(tmp_path / "file") == ABC


def test_a_pipe_is_refused_as_reading_it_would_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is not a regular file"):
        hash_file(tmp_path / "pipe")


def test_the_rest_of_an_open_file_is_hashed_in_steps_that_are_told() -> None:
    file, told = io.BytesIO(b"-" + bytes((1 << 20) + 5)), list[int]()
    file.seek(1)
    assert hash_rest(file, "sha384", told.append) == hashlib.sha384(bytes((1 << 20) + 5)).digest()
    assert told == [1 << 20, 5]
