"""Tests of sparse changes to files."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.patch import FilePatch, Replacement, patched_view, write_patched
from rocwheel.core.reading import join_data, load

if TYPE_CHECKING:
    from pathlib import Path

DATA = memoryview(bytes(range(1, 101)))


@st.composite
def replacements(draw: st.DrawFn) -> tuple[Replacement, ...]:
    bounds = sorted(draw(st.sets(st.integers(0, 100), max_size=8)))
    pairs = zip(bounds[::2], bounds[1::2], strict=False)
    return tuple(draw(_replacement(start, stop)) for start, stop in pairs)


def _replacement(start: int, stop: int) -> st.SearchStrategy[Replacement]:
    written = st.binary(max_size=stop - start).map(lambda new: Replacement(start, stop, new))
    copied = st.integers(0, 100 - stop + start).map(lambda source: Replacement(start, stop, source=source))
    return written | copied


def expected(patch: FilePatch) -> bytes:
    data = bytearray(DATA)
    for replacement in patch.replacements:
        size = replacement.stop - replacement.start
        data[replacement.start : replacement.stop] = bytes(replacement.content(DATA)).ljust(size, b"\0")
    return bytes(data)


@pytest.mark.parametrize(
    ("start", "stop", "is_hole"),
    [
        pytest.param(22, 40, True, id="the zeros behind the data"),
        pytest.param(21, 40, False, id="a byte of the data before them"),
        pytest.param(22, 41, False, id="a byte of the old file behind them"),
        pytest.param(50, 60, False, id="bytes of another place"),
        pytest.param(90, 95, False, id="behind the last replacement"),
    ],
)
def test_is_hole_is_true_for_a_range_that_becomes_zeros(start: int, stop: int, is_hole: bool) -> None:
    patch = FilePatch(100, (Replacement(20, 40, b"ab"), Replacement(50, 60, source=0)))
    assert patch.is_hole(start, stop) is is_hole


@given(replacements(), st.integers(0, 100), st.integers(0, 100))
def test_a_hole_contains_only_zeros(changes: tuple[Replacement, ...], start: int, stop: int) -> None:
    patch = FilePatch(100, changes)
    if patch.is_hole(start, stop):
        assert expected(patch)[start:stop] == bytes(max(stop - start, 0))


@given(replacements(), st.integers(0, 100), st.integers(0, 100))
def test_any_range_of_the_patched_file_can_be_read(changes: tuple[Replacement, ...], start: int, size: int) -> None:
    patch = FilePatch(100, changes)
    stop = min(start + size, 100)
    assert join_data(patch.apply(DATA, start, stop)) == expected(patch)[start:stop]


@given(replacements())
def test_the_patched_file_is_written(changes: tuple[Replacement, ...]) -> None:
    file = io.BytesIO()
    write_patched(file, DATA, changes)
    file.truncate(100)
    assert file.getvalue().ljust(100, b"\0") == expected(FilePatch(100, changes))


def test_ranges_that_become_zero_take_no_disk_space(tmp_path: Path) -> None:
    path = tmp_path / "file"
    data = memoryview(b"x" * (4 << 20))
    with path.open("wb") as file:
        write_patched(file, data, [Replacement(4096, 2 << 20, b"new"), Replacement(3 << 20, 4 << 20, b"end")])
    assert path.stat().st_size == 4 << 20
    assert path.stat().st_blocks * 512 < (1 << 20) + 65536
    assert path.read_bytes().strip(b"x") == b"new".ljust((2 << 20) - 4096, b"\0") + b"x" * (1 << 20) + b"end".ljust(
        1 << 20, b"\0"
    )


def test_the_last_replacement_can_extend_past_the_old_end() -> None:
    patch = FilePatch(104, (Replacement(98, 104, b"abcdef"),))
    assert join_data(patch.apply(DATA, 97, 104)) == b"babcdef"


def test_overlapping_replacements_are_refused() -> None:
    with pytest.raises(ValueError, match="replacements overlap, or are out of order"):
        FilePatch(100, (Replacement(0, 10, b""), Replacement(9, 20, b"")))


def test_the_gap_between_the_old_end_and_a_replacement_is_zero() -> None:
    patch = FilePatch(107, (Replacement.of(104, b"end"),))
    assert join_data(patch.apply(DATA, 98)) == b"cd\0\0\0\0end"


@st.composite
def patches(draw: st.DrawFn, *, sources: bool) -> FilePatch:
    changes = draw(replacements().filter(lambda found: sources or all(change.source is None for change in found)))
    size = draw(st.integers(0, 130))
    grown = (Replacement.of(size, b"more"),) if draw(st.booleans()) and size > 100 else ()
    kept = tuple(change for change in changes if change.stop <= size)
    return FilePatch(size + 4 * len(grown), (*kept, *grown))


@given(patches(sources=True), patches(sources=False))
def test_a_combined_patch_equals_applying_both_patches_in_turn(first: FilePatch, second: FilePatch) -> None:
    once = join_data(first.apply(DATA))
    assert len(once) == first.size
    twice = join_data(second.apply(memoryview(once)))
    assert join_data(first.then(second).apply(DATA)) == twice


def test_a_patch_that_shrinks_a_file_is_written() -> None:
    file = io.BytesIO()
    patch = FilePatch(8, (Replacement(2, 4, source=50),))
    write_patched(file, DATA, patch.replacements, size=patch.size)
    assert file.getvalue() == bytes([1, 2, 51, 52, 5, 6, 7, 8])


def test_each_buffer_can_be_released_independently() -> None:
    patch = FilePatch(4 << 20, (Replacement(2, 3 << 20, b"new"),))
    assert sum(map(len, patch.apply(DATA))) == 4 << 20
    for buffer in patch.apply(DATA):
        load(buffer).release()
    assert sum(map(len, patch.apply(DATA))) == 4 << 20


def test_a_patched_view_can_be_read_before_the_file_is_written() -> None:
    patch = FilePatch(104, (Replacement.of(2, b"new"), Replacement.of(102, b"!!")))
    made = patched_view(DATA, patch)
    assert bytes(made) == b"".join(map(bytes, patch.apply(DATA)))
    assert bytes(made[1:6][1:]) == b"new\x06"


def test_a_patch_is_written_in_pieces_of_a_few_mebibytes() -> None:
    data = memoryview(bytes(range(256)) * (20 << 10))
    patch = FilePatch(len(data) + 7, (Replacement(3, 5, b"ab"), Replacement(len(data), len(data) + 7, b"tail")))
    pieces = list(patch.pieces(data))
    assert [len(piece) for piece in pieces] == [4 << 20, (1 << 20) + 7]
    assert b"".join(pieces) == bytes(data[:3]) + b"ab" + bytes(data[5:]) + b"tail\0\0\0"


def test_an_empty_file_has_no_pieces() -> None:
    assert list(FilePatch(0).pieces(memoryview(b""))) == []
