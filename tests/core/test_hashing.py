"""Tests of `rocwheel.core.hashing`."""

from __future__ import annotations

import hashlib
import io
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core import hashing
from rocwheel.core import hashing as seals
from rocwheel.core.hashing import FollowingHash, Seal, SealedPart, hash_file, hash_rest, is_intact, seal
from rocwheel.core.reading import FileRange

if TYPE_CHECKING:
    from pathlib import Path


ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
"""FIPS 180-2, B.1."""


def test_the_hash_of_a_file_is_sha256(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert hash_file(tmp_path / "file") == ABC


def test_hashing_a_pipe_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it isn't a regular file"):
        hash_file(tmp_path / "pipe")


def test_the_rest_of_an_open_file_is_hashed_with_progress() -> None:
    file, told = io.BytesIO(b"-" + bytes((1 << 20) + 5)), list[int]()
    file.seek(1)
    assert hash_rest(file, "sha384", told.append) == hashlib.sha384(bytes((1 << 20) + 5)).digest()
    assert told == [1 << 20, 5]


@given(st.lists(st.binary(max_size=30)), st.integers(1, 9), st.integers(0, 20))
def test_a_growing_file_is_hashed_from_its_final_bytes(parts: list[bytes], step: int, behind: int) -> None:
    data = bytearray()
    reads: list[tuple[int, int]] = []

    def read(start: int, stop: int) -> bytes:
        reads.append((start, stop))
        return bytes(data[start:stop])

    before = hashing._FOLLOWING_STEP, hashing._BEHIND
    hashing._FOLLOWING_STEP, hashing._BEHIND = step, behind
    try:
        hasher = FollowingHash(read)
        for part in parts:
            start = len(data)
            data += bytes(len(part))  # the part comes first as zeros, as a header does
            data[start:] = part
            hasher.follow(len(data))
        assert hasher.finish(len(data)) == hashlib.sha256(data).hexdigest()
    finally:
        hashing._FOLLOWING_STEP, hashing._BEHIND = before
    assert sum(stop - start for start, stop in reads) == len(data)  # nothing is read twice


DATA = b"head, packed bytes, between, more packed bytes, tail"
RANGES = ((6, 18), (18, 19), (29, 46))


def part(start: int, stop: int, data: bytes = DATA) -> SealedPart:
    return SealedPart(start, stop, hashlib.sha256(data[start:stop]).digest())


def sealed(data: bytes = DATA) -> Seal:
    return seal(len(data), [part(*place, data) for place in RANGES], lambda start, stop: data[start:stop])


def has_its_bytes(path: Path, of: Seal) -> bool:
    with ThreadPoolExecutor(2) as executor:
        return is_intact(FileRange.whole(path), of, executor)


def test_the_bytes_outside_all_parts_are_hashed_together() -> None:
    assert sealed() == Seal(
        52,
        (part(6, 18), part(18, 19), part(29, 46)),
        hashlib.sha256(b"head,  between, , tail").digest(),
    )


def test_sealing_a_file_does_not_read_its_parts() -> None:
    read: list[tuple[int, int]] = []

    def note_and_read(start: int, stop: int) -> bytes:
        read.append((start, stop))
        return DATA[start:stop]

    seal(52, [part(*place) for place in RANGES], note_and_read)
    assert read == [(0, 6), (19, 29), (46, 52)]


def test_an_unchanged_file_is_intact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(DATA)
    assert has_its_bytes(tmp_path / "file", sealed())
    monkeypatch.setattr(seals, "_STEP", 5)
    assert has_its_bytes(tmp_path / "file", sealed())


@given(place=st.integers(0, len(DATA) - 1), bit=st.integers(0, 7))
def test_any_flipped_bit_in_a_file_is_detected(tmp_path_factory: pytest.TempPathFactory, place: int, bit: int) -> None:
    path = tmp_path_factory.getbasetemp() / "flipped"
    raw = bytearray(DATA)
    raw[place] ^= 1 << bit
    path.write_bytes(raw)
    assert not has_its_bytes(path, sealed())


@pytest.mark.parametrize("data", [DATA[:-1], DATA + b"x", b""], ids=["shorter", "longer", "empty"])
def test_a_file_with_a_different_size_is_not_intact(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "file").write_bytes(data)
    assert not has_its_bytes(tmp_path / "file", sealed())


def test_a_file_deleted_in_the_meantime_is_not_intact(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(DATA)
    file = FileRange.whole(tmp_path / "file")
    (tmp_path / "file").unlink()
    with ThreadPoolExecutor(1) as executor:
        assert not is_intact(file, sealed(), executor)


def test_hashing_a_file_reports_progress(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(5 << 19))
    steps: list[int] = []
    hash_file(tmp_path / "a", steps.append)
    assert steps == [1 << 20, 1 << 20, 1 << 19]
