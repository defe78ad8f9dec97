"""Tests of `rocwheel.wheels.member_compression`."""

from __future__ import annotations

import hashlib
import lzma
import random
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import deflate
import deflate as library
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.wheels import member_compression as part
from rocwheel.wheels.content import BytesContent, Digest, SequenceContent, TarFile, TarLink, tar_content
from rocwheel.wheels.member_compression import (
    BLOCK,
    STORED,
    StreamFormat,
    block_ranges,
    compress_piece,
    deflate_block,
    deflate_part,
    expected_size,
    is_worthwhile,
    open_deflate,
    pack_whole,
    piece_ranges,
)
from tests.support.raw_streams import inflate
from tests.wheels.doubles import ZeroContent, read_all

if TYPE_CHECKING:
    from tests.support.tools import RunTool


TEXT = b"".join(b"line %d of a text, %d in all\n" % (number, number * number) for number in range(9000))
EMPTY_FINAL_BLOCK = b"\x03\x00"


def opened(data: bytes, level: int = 6) -> bytes:
    """Return the stream of ``data``, which has to be one."""
    stream = open_deflate(memoryview(data), level)
    assert stream is not None
    return stream


@pytest.mark.parametrize("level", [1, 4, 6, 9, 12])
def test_joined_streams_form_one_stream(level: int) -> None:
    parts = [TEXT, TEXT[:100_000], TEXT[1:]]
    packed = b"".join(opened(part, level) for part in parts) + EMPTY_FINAL_BLOCK
    assert inflate(packed) == b"".join(parts)
    assert deflate.deflate_decompress(packed, sum(map(len, parts))) == b"".join(parts)


def test_the_flush_is_correct_at_any_bit_position_of_the_last_block() -> None:
    parts = [TEXT[: 50_000 + more] for more in range(40)]
    sizes = [len(opened(part)) - len(deflate.deflate_compress(part, 6)) for part in parts]
    assert inflate(b"".join(map(opened, parts)) + EMPTY_FINAL_BLOCK) == b"".join(parts)
    # Four bytes where the header of the empty block fits into the last byte, else five.
    assert set(sizes) == {4, 5}


@given(
    st.lists(st.tuples(st.integers(0, 2**31), st.integers(1, 256), st.integers(1, 40_000)), min_size=1, max_size=4),
    st.sampled_from([1, 6, 9]),
)
def test_an_opened_stream_inflates_to_its_data(runs: list[tuple[int, int, int]], level: int) -> None:
    data = b"".join(bytes(random.Random(seed).choices(range(symbols), k=size)) for seed, symbols, size in runs)
    stream = open_deflate(memoryview(data), level)
    assert stream is None or inflate(stream + EMPTY_FINAL_BLOCK) == data


def test_a_library_compresses_smaller_than_with_zlib() -> None:
    data = Path(sys.executable).resolve().read_bytes()[: 8 << 20]
    assert len(opened(data)) < len(zlib.compress(data, 6))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"a few bytes", id="a few bytes, which the fixed codes pack"),
        pytest.param(bytes(1 << 20), id="zeros, which any code may give"),
        pytest.param(random.Random(1).randbytes(1 << 16), id="noise, which is stored"),
    ],
)
def test_data_without_a_provable_final_block_is_left_to_other_encoders(data: bytes) -> None:
    assert open_deflate(memoryview(data), 6) is None


KIB = 1 << 10
PIECE = 256 * KIB
NOISE = random.Random(1).randbytes(PIECE)
DEFLATE_PART_TEXT = b"".join(b"line %d of a text\n" % number for number in range(16_000))[:PIECE]
ZEROS = bytes(PIECE)
KINDS = {"zeros": ZEROS, "noise": NOISE, "text": DEFLATE_PART_TEXT}


def deflate_of_deflate_part(data: bytes, start: int = 0, *, level: int = 6, is_last: bool = True) -> bytes:
    """Return the part of ``data`` from ``start`` on."""
    return deflate_part(memoryview(data), start, level, is_last=is_last)


@given(st.lists(st.sampled_from(sorted(KINDS)), max_size=6), st.integers(0, PIECE), st.sampled_from([0, 1, 6, 12]))
def test_a_part_with_any_kinds_of_bytes_inflates_to_the_same_bytes(kinds: list[str], cut: int, level: int) -> None:
    data = b"".join(KINDS[kind] for kind in kinds)
    data = data[: max(len(data) - cut, 0)]
    assert inflate(deflate_of_deflate_part(data, level=level)) == data


@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4), st.integers(1, 1000))
def test_two_joined_parts_form_one_stream(kinds: list[str], share: int) -> None:
    data = b"".join(KINDS[kind] for kind in kinds)
    cut = len(data) * share // 1000
    assert inflate(deflate_of_deflate_part(data[:cut], is_last=False) + deflate_of_deflate_part(data, cut)) == data


@pytest.mark.parametrize(
    ("data", "least", "most"),
    [
        pytest.param(ZEROS * 16, 1, 5 * KIB, id="zeros take next to nothing"),
        pytest.param(NOISE, PIECE, PIECE + 64, id="noise grows by a few bytes"),
        pytest.param(DEFLATE_PART_TEXT, 1, PIECE // 4, id="text shrinks"),
        pytest.param(NOISE[: PIECE // 2] + bytes(PIECE // 2), PIECE // 2, PIECE // 2 + KIB, id="half of it zeros"),
    ],
)
def test_the_size_of_a_part_depends_on_its_bytes(data: bytes, least: int, most: int) -> None:
    assert least <= len(deflate_of_deflate_part(data)) <= most


@pytest.mark.parametrize(
    ("data", "samples"),
    [
        pytest.param(DEFLATE_PART_TEXT, 1, id="text: one sample is enough"),
        pytest.param(ZEROS, 0, id="zeros: none"),
        pytest.param(NOISE, 4, id="noise: all four"),
        pytest.param(
            NOISE[: PIECE // 2] + DEFLATE_PART_TEXT[: PIECE // 2],
            3,
            id="text behind noise: up to the first of the text",
        ),
    ],
)
def test_only_small_samples_are_deflated_to_classify_the_bytes(
    data: bytes, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    def note(data: memoryview, level: int) -> bytearray:
        sizes.append(len(data))
        return whole(data, level)

    whole = library.deflate_compress
    monkeypatch.setattr(library, "deflate_compress", note)
    inflate(deflate_of_deflate_part(data))
    assert [size for size in sizes if size < PIECE] == [4 * KIB] * samples


def test_no_final_block_is_searched_for_if_zeros_follow_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a compressed bundle, inside a piece between noise and zeros."""
    searched: list[int] = []
    monkeypatch.setattr(part, "open_deflate", lambda data, _: searched.append(len(data)))
    half = PIECE // 2
    data = NOISE + NOISE[:half] + bytes(half) + ZEROS
    packed = deflate_of_deflate_part(data)
    assert inflate(packed) == data
    assert searched == []


def test_a_part_refers_to_preceding_bytes() -> None:
    """Noise that comes a second time is found in the window, not stored."""
    assert len(deflate_of_deflate_part(NOISE[:20_000] * 2, 20_000)) < 500


def test_the_same_bytes_always_give_the_same_part() -> None:
    """The zeros of the second call come from a cache."""
    data = DEFLATE_PART_TEXT + ZEROS + NOISE
    assert deflate_of_deflate_part(data) == deflate_of_deflate_part(data)


if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


STREAM_CODEC_TEXT = b"".join(b"#define HIP_%d %d\n" % (number, number) for number in range(20_000))


def pieces(content: SequenceContent | BytesContent, encoding: StreamFormat, size: int) -> bytes:
    ranges = [(start, min(start + size, content.size)) for start in range(0, content.size, size)]
    return b"".join(compress_piece(content, start, stop, encoding) for start, stop in ranges)


@pytest.mark.parametrize("size", [30_000, 65_536, 10**9], ids=["many pieces", "a few", "one"])
def test_the_standard_library_reads_joined_pieces_as_one_file(size: int) -> None:
    content = BytesContent(STREAM_CODEC_TEXT)
    assert lzma.decompress(pieces(content, "xz", size)) == STREAM_CODEC_TEXT
    assert zstd.decompress(pieces(content, "zst", size)) == STREAM_CODEC_TEXT


@pytest.mark.parametrize(("encoding", "tool"), [("xz", "xz"), ("zst", "zstd")])
def test_the_xz_and_zstd_tools_test_and_unpack_joined_pieces(
    tmp_path: Path, run_tool: RunTool, encoding: StreamFormat, tool: str
) -> None:
    path = tmp_path / f"a.{encoding}"
    path.write_bytes(pieces(BytesContent(STREAM_CODEC_TEXT), encoding, 50_000))
    assert run_tool([tool, "-tq", path]) == ""
    assert run_tool([tool, "-dcq", path]) == STREAM_CODEC_TEXT.decode()


@pytest.mark.parametrize("encoding", ["xz", "zst"])
def test_gnu_tar_unpacks_a_tar_compressed_in_pieces(tmp_path: Path, run_tool: RunTool, encoding: StreamFormat) -> None:
    noise = random.Random(1).randbytes(70_000)
    members: list[TarFile | TarLink] = [
        TarFile("include/hip.h", 0o644, BytesContent(STREAM_CODEC_TEXT)),
        TarFile("bin/hipcc", 0o755, BytesContent(noise)),
        TarLink("lib/libamdhip64.so", "libamdhip64.so.5"),
    ]
    path = tmp_path / f"_devel.tar.{encoding}"
    path.write_bytes(pieces(tar_content(members, mtime=0), encoding, 40_000))
    run_tool(["tar", "-xf", path, "-C", tmp_path], is_silent=True)
    assert (tmp_path / "include/hip.h").read_bytes() == STREAM_CODEC_TEXT
    assert (tmp_path / "bin/hipcc").read_bytes() == noise
    assert (tmp_path / "lib/libamdhip64.so").readlink().name == "libamdhip64.so.5"


@pytest.mark.parametrize("encoding", ["xz", "zst"])
def test_a_piece_of_several_buffers_equals_a_piece_of_the_joined_buffer(encoding: StreamFormat) -> None:
    content = SequenceContent((BytesContent(STREAM_CODEC_TEXT[:100]), BytesContent(STREAM_CODEC_TEXT[100:])))
    assert compress_piece(content, 0, content.size, encoding) == compress_piece(
        BytesContent(read_all(content)), 0, content.size, encoding
    )


MIB = 1 << 20
COMPRESSION_NOISE = random.Random(6).randbytes(MIB)
COMPRESSION_TEXT = b"".join(b"%d kernels for gfx%x\n" % (number, number * number % 4091) for number in range(60_000))
LEVELS = range(1, 13)

contents = st.one_of(
    st.binary(max_size=200),
    st.builds(
        lambda start, size: COMPRESSION_TEXT[start : start + size], st.integers(0, 1000), st.integers(0, 200_000)
    ),
    st.builds(bytes, st.integers(0, 200_000)),
    st.builds(lambda size: COMPRESSION_NOISE[:size], st.integers(0, 100_000)),
)


def digest_of(data: bytes) -> Digest:
    return Digest(zlib.crc32(data), hashlib.sha256(data).digest(), len(data))


@given(contents, st.sampled_from(LEVELS))
def test_zlib_unpacks_a_member_packed_whole_to_the_same_bytes(data: bytes, level: int) -> None:
    packed = pack_whole(BytesContent(data), level)
    assert packed.digest == digest_of(data)
    assert (bytes(packed.data) if packed.method == STORED else inflate(bytes(packed.data))) == data


@given(st.lists(contents, max_size=4))
def test_a_member_of_several_buffers_is_packed_like_the_joined_buffer(parts: list[bytes]) -> None:
    several = pack_whole(SequenceContent(tuple(map(BytesContent, parts))), 6)
    assert several == pack_whole(BytesContent(b"".join(parts)), 6)


@pytest.mark.parametrize("data", [b"", b"\x7f", COMPRESSION_NOISE[:5000]], ids=["nothing", "one byte", "noise"])
def test_data_that_deflate_would_not_shrink_is_stored(data: bytes) -> None:
    packed = pack_whole(BytesContent(data), 6)
    assert (packed.method, bytes(packed.data)) == (STORED, data)


@given(contents, st.integers(1, 99), st.sampled_from(LEVELS))
def test_blocks_joined_in_order_form_one_stream(data: bytes, blocks: int, level: int) -> None:
    content = BytesContent(data or b"\0")
    block = -(-content.size // blocks)
    packed = [deflate_block(content, start, stop, level).data for start, stop in block_ranges(content.size, block)]
    assert inflate(b"".join(packed)) == content.data


@pytest.mark.parametrize("difference", [-1, 0, 1], ids=["one less", "full", "one more"])
def test_full_size_blocks_join_at_the_boundary(difference: int) -> None:
    content = BytesContent((COMPRESSION_TEXT * 8)[: 2 * BLOCK + difference])
    packed = [deflate_block(content, start, stop, 6).data for start, stop in block_ranges(content.size, BLOCK)]
    assert inflate(b"".join(packed)) == content.data


def test_a_block_uses_the_preceding_bytes() -> None:
    """Without the 32 KiB before it, a block of what was there already would not shrink at all."""
    repeated = BytesContent(COMPRESSION_NOISE[:20_000] * 2)
    assert len(deflate_block(repeated, 20_000, 40_000, 6).data) < 500


def test_a_higher_level_compresses_blocks_smaller() -> None:
    content = BytesContent(COMPRESSION_TEXT)
    sizes = [len(deflate_block(content, 0, content.size, level).data) for level in (1, 6, 12)]
    assert sizes == sorted(set(sizes), reverse=True)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(COMPRESSION_NOISE * 2, True, id="noise"),
        pytest.param(COMPRESSION_TEXT, False, id="text"),
        pytest.param(COMPRESSION_NOISE + bytes(MIB) + COMPRESSION_NOISE, False, id="zeros in the middle of noise"),
        pytest.param(
            COMPRESSION_NOISE * 8 + bytes(24 * MIB) + COMPRESSION_NOISE * 32,
            False,
            id="zeros off the middle of much noise",
        ),
        pytest.param(COMPRESSION_NOISE[:-1], False, id="noise too small to be worth sampling"),
        pytest.param(zlib.compress(COMPRESSION_NOISE * 2), True, id="compressed"),
    ],
)
def test_incompressible_members_are_detected_by_sampling(data: bytes, expected: bool) -> None:
    assert is_worthwhile(len(data), expected_size(BytesContent(data))) is not expected


@given(st.integers(0, 10 * BLOCK))
def test_blocks_cover_a_member_without_gaps_or_overlaps(size: int) -> None:
    ranges = block_ranges(size, BLOCK)
    assert [start for start, _ in ranges] == [0, *(stop for _, stop in ranges[:-1])][: len(ranges)]
    assert all(0 < stop - start <= BLOCK for start, stop in ranges)
    assert (ranges[-1][1] if ranges else 0) == size


@given(st.lists(st.integers(1, 300), max_size=8), st.integers(1, 400))
def test_pieces_of_a_sequence_begin_at_its_joints_and_cover_the_sequence(sizes: list[int], piece: int) -> None:
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    content = SequenceContent(tuple(BytesContent(bytes(size)) for size in sizes), tuple(ends[:-1:2]))
    ranges = piece_ranges(content, piece)
    assert [at for start, stop in ranges for at in range(start, stop)] == list(range(content.size))
    assert all(stop - start <= piece for start, stop in ranges)
    assert {start for start, _ in ranges} >= set(ends[:-1:2] if content.size > piece else [])


def test_content_no_larger_than_a_piece_stays_whole() -> None:
    content = SequenceContent((BytesContent(b"ab"), BytesContent(b"c")), (2,))
    assert piece_ranges(content, 3) == [(0, 3)]


def test_a_file_is_divided_only_by_size() -> None:
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


def test_a_growing_file_in_a_tar_changes_only_nearby_pieces() -> None:
    before, after = _pieces(_tar({})), _pieces(_tar({150: 3000}))
    assert len(before) == 61
    assert len(after - before) == 19


def test_a_new_file_in_a_tar_changes_only_nearby_pieces() -> None:
    more = [TarFile("include/hip/part150a.h", 0o644, BytesContent(b"new"))]
    parts = [TarFile(f"include/hip/part{number:03}.h", 0o644, BytesContent(b"%03d" % number)) for number in range(300)]
    before = tar_content(parts, mtime=0)
    after = tar_content([*parts[:151], *more, *parts[151:]], mtime=0)
    assert (len(_pieces(before)), len(_pieces(after) - _pieces(before))) == (23, 8)
