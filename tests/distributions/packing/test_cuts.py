"""Cuts: every byte is in one piece, and a change moves few cuts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rocwheel.distributions.content.content import BytesContent, SequenceContent
from rocwheel.distributions.content.tar_content import TarFile, TarLink, tar_content
from rocwheel.distributions.packing.compression import BLOCK
from rocwheel.distributions.packing.cuts import block_ranges, piece_ranges
from tests.distributions.doubles import ZeroContent, read_all

KIB = 1 << 10


@given(st.integers(0, 10 * BLOCK))
def test_blocks_cover_a_member_without_gap_or_overlap(size: int) -> None:
    ranges = block_ranges(size, BLOCK)
    assert [start for start, _ in ranges] == [0, *(stop for _, stop in ranges[:-1])][: len(ranges)]
    assert all(0 < stop - start <= BLOCK for start, stop in ranges)
    assert (ranges[-1][1] if ranges else 0) == size


@given(st.lists(st.integers(1, 300), max_size=8), st.integers(1, 400))
def test_pieces_of_a_sequence_begin_at_its_joints_and_cover_it(sizes: list[int], piece: int) -> None:
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    content = SequenceContent(tuple(BytesContent(bytes(size)) for size in sizes), tuple(ends[:-1:2]))
    ranges = piece_ranges(content, piece)
    assert [at for start, stop in ranges for at in range(start, stop)] == list(range(content.size))
    assert all(stop - start <= piece for start, stop in ranges)
    assert {start for start, _ in ranges} >= set(ends[:-1:2] if content.size > piece else [])


def test_what_is_no_larger_than_a_piece_stays_whole() -> None:
    content = SequenceContent((BytesContent(b"ab"), BytesContent(b"c")), (2,))
    assert piece_ranges(content, 3) == [(0, 3)]


def test_a_file_is_cut_by_its_size_alone() -> None:
    assert piece_ranges(ZeroContent(10), 4) == [(0, 4), (4, 8), (8, 10)]


def _tar(sizes: dict[int, int]) -> SequenceContent:
    files = [
        TarFile(f"include/hip/part{number:03}.h", 0o644, BytesContent(b"%03d" % number * sizes.get(number, 700)))
        for number in range(300)
    ]
    return tar_content([*files, TarLink("lib/libamdhip64.so", "libamdhip64.so.5")], mtime=0)


def _pieces(content: SequenceContent) -> set[bytes]:
    data = read_all(content)
    return {data[start:stop] for start, stop in piece_ranges(content, 16 * KIB)}


def test_a_file_that_grows_in_a_tar_changes_the_pieces_near_it_alone() -> None:
    before, after = _pieces(_tar({})), _pieces(_tar({150: 3000}))
    assert len(before) == 61
    assert len(after - before) == 19


def test_a_file_that_comes_to_a_tar_changes_the_pieces_near_it_alone() -> None:
    more = [TarFile("include/hip/part150a.h", 0o644, BytesContent(b"new"))]
    parts = [TarFile(f"include/hip/part{number:03}.h", 0o644, BytesContent(b"%03d" % number)) for number in range(300)]
    before = tar_content(parts, mtime=0)
    after = tar_content([*parts[:151], *more, *parts[151:]], mtime=0)
    assert (len(_pieces(before)), len(_pieces(after) - _pieces(before))) == (23, 8)
