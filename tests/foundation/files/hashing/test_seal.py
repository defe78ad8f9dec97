"""Seals of files: any other byte is found, whoever has hashed it first."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.foundation.files.hashing import seal as seals
from rocwheel.foundation.files.hashing.seal import Seal, SealedPart, is_intact, seal
from rocwheel.foundation.files.reading.file_range import FileRange

if TYPE_CHECKING:
    from pathlib import Path

DATA = b"head, packed bytes, between, more packed bytes, tail"
RANGES = ((6, 18), (18, 19), (29, 46))


def part(start: int, stop: int, data: bytes = DATA) -> SealedPart:
    return SealedPart(start, stop, hashlib.sha256(data[start:stop]).digest())


def sealed(data: bytes = DATA) -> Seal:
    return seal(len(data), [part(*place, data) for place in RANGES], lambda start, stop: data[start:stop])


def has_its_bytes(path: Path, of: Seal) -> bool:
    with ThreadPoolExecutor(2) as executor:
        return is_intact(FileRange.whole(path), of, executor)


def test_what_no_part_has_is_hashed_together() -> None:
    assert sealed() == Seal(
        52,
        (part(6, 18), part(18, 19), part(29, 46)),
        hashlib.sha256(b"head,  between, , tail").digest(),
    )


def test_parts_are_not_read_to_seal_a_file() -> None:
    read: list[tuple[int, int]] = []

    def note_and_read(start: int, stop: int) -> bytes:
        read.append((start, stop))
        return DATA[start:stop]

    seal(52, [part(*place) for place in RANGES], note_and_read)
    assert read == [(0, 6), (19, 29), (46, 52)]


def test_a_file_as_it_was_is_intact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(DATA)
    assert has_its_bytes(tmp_path / "file", sealed())
    monkeypatch.setattr(seals, "_STEP", 5)
    assert has_its_bytes(tmp_path / "file", sealed())


@given(place=st.integers(0, len(DATA) - 1), bit=st.integers(0, 7))
def test_any_flipped_bit_is_found(tmp_path_factory: pytest.TempPathFactory, place: int, bit: int) -> None:
    path = tmp_path_factory.getbasetemp() / "flipped"
    raw = bytearray(DATA)
    raw[place] ^= 1 << bit
    path.write_bytes(raw)
    assert not has_its_bytes(path, sealed())


@pytest.mark.parametrize("data", [DATA[:-1], DATA + b"x", b""], ids=["shorter", "longer", "empty"])
def test_a_file_of_another_size_is_not_intact(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "file").write_bytes(data)
    assert not has_its_bytes(tmp_path / "file", sealed())


def test_a_file_that_goes_meanwhile_is_not_intact(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(DATA)
    file = FileRange.whole(tmp_path / "file")
    (tmp_path / "file").unlink()
    with ThreadPoolExecutor(1) as executor:
        assert not is_intact(file, sealed(), executor)
