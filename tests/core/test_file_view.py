"""Files as bytes that are read when they are asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.reading import ChangedFileError, FileRange, FileView, iter_pieces, join_data, load

if TYPE_CHECKING:
    from pathlib import Path

CONTENT = os.urandom(300_000)
PLACES = st.integers(0, 310_000)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("views") / "file"
    path.write_bytes(b"head" + CONTENT)
    return path


@pytest.fixture(scope="module")
def view(path: Path) -> FileView:
    return FileView(FileRange.whole(path).part(4, 4 + len(CONTENT)))


@given(start=PLACES, stop=PLACES, inner=st.tuples(PLACES, PLACES))
def test_slices_match_the_bytes_of_the_file(view: FileView, start: int, stop: int, inner: tuple[int, int]) -> None:
    part, expected = view[start:stop], CONTENT[start:stop]
    assert (len(part), bytes(part)) == (len(expected), expected)
    assert bytes(part[inner[0] : inner[1]]) == expected[inner[0] : inner[1]]


@given(size=st.integers(1000, 400_000))
def test_the_pieces_of_a_view_make_up_the_whole(view: FileView, size: int) -> None:
    pieces = list(iter_pieces(view, size))
    assert join_data(pieces) == CONTENT
    assert {len(piece) for piece in pieces[:-1]} <= {size}


def test_a_file_view_reads_lazily(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    real = os.pread

    def pread(file: int, size: int, offset: int) -> bytes:
        asked.append((offset, size))
        return real(file, size, offset)

    monkeypatch.setattr(os, "pread", pread)
    view = FileView(FileRange.whole(path))
    tail = view[290_000:]
    assert asked == []
    assert bytes(tail[:4]) == CONTENT[289_996:290_000]
    assert asked == [(4 << 16, len(CONTENT) + 4 - (4 << 16))]
    bytes(tail[100:200])
    assert len(asked) == 1


def test_loading_bytes_in_memory_returns_them_unchanged() -> None:
    data = memoryview(b"abc")
    assert load(data) is data


def test_a_file_that_changes_between_reads_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(2 << 20))
    os.utime(path, (1, 1))
    with FileRange.whole(path).view() as data:
        assert bytes(data[:4]) == bytes(4)
        path.write_bytes(bytes(2 << 20))
        with pytest.raises(ChangedFileError, match="changed while it was being read"):
            load(data[1 << 20 :])
