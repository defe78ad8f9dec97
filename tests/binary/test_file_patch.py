"""Tests of sparse changes to files."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.file_patch import FilePatch, Replacement, write_patched
from rocwheel.binary.runpath_patch import ElfPatch

DATA = memoryview(bytes(range(1, 101)))


@st.composite
def replacements(draw: st.DrawFn) -> tuple[Replacement, ...]:
    bounds = sorted(draw(st.sets(st.integers(0, 100), max_size=8)))
    pairs = zip(bounds[::2], bounds[1::2], strict=False)
    return tuple(Replacement(start, stop, draw(st.binary(max_size=stop - start))) for start, stop in pairs)


def expected(patch: FilePatch) -> bytes:
    data = bytearray(DATA)
    for replacement in patch.replacements:
        size = replacement.stop - replacement.start
        data[replacement.start : replacement.stop] = bytes(replacement.data).ljust(size, b"\0")
    return bytes(data)


@given(replacements(), st.integers(0, 100), st.integers(0, 100))
def test_any_range_of_the_patched_file_is_given(changes: tuple[Replacement, ...], start: int, size: int) -> None:
    patch = FilePatch(100, changes)
    stop = min(start + size, 100)
    assert b"".join(patch.apply(DATA, start, stop)) == expected(patch)[start:stop]


@given(replacements())
def test_patched_file_is_written(changes: tuple[Replacement, ...]) -> None:
    file = io.BytesIO()
    write_patched(file, DATA, changes)
    file.truncate(100)
    assert file.getvalue().ljust(100, b"\0") == expected(FilePatch(100, changes))


def test_last_replacement_may_lie_past_the_old_end() -> None:
    patch = FilePatch(104, (Replacement(98, 104, b"abcdef"),))
    assert b"".join(patch.apply(DATA, 97, 104)) == b"babcdef"


def test_replacements_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="replacements overlap, or are out of order"):
        FilePatch(100, (Replacement(0, 10, b""), Replacement(9, 20, b"")))


def test_patch_of_the_run_path_is_joined_in() -> None:
    device = FilePatch(100, (Replacement(10, 20, b"new"),))
    run_path = ElfPatch(110, ((5, b"ab"), (30, b"c")), b"tail")
    once = b"".join(device.apply(DATA, 0, 100))
    both = b"".join(run_path.apply(memoryview(once)))
    assert b"".join(device.join(run_path, old_size=100).apply(DATA, 0, 110)) == both
