"""The length of zstd frames, compared with what zstd itself says."""

from __future__ import annotations

import os
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.bundles.compressed.zstd_frame import measure_frame
from rocwheel.core.compression import zstd
from rocwheel.core.reading import FileRange

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
PARAMETER = zstd.CompressionParameter


def compress(data: bytes, *, checksum: bool = False, content_size: bool = True, level: int = 3) -> bytes:
    options = {
        int(PARAMETER.checksum_flag): int(checksum),
        int(PARAMETER.content_size_flag): int(content_size),
        int(PARAMETER.compression_level): level,
    }
    return zstd.compress(data, options=options)


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("content_size", [False, True])
@pytest.mark.parametrize("data", [b"", b"x", b"x" * 300, bytes(MIB), os.urandom(300_000), b"ab" * 70_000])
def test_a_frame_ends_where_zstd_says_whatever_follows(data: bytes, *, checksum: bool, content_size: bool) -> None:
    frame = compress(data, checksum=checksum, content_size=content_size)
    assert measure_frame(memoryview(frame + b"what follows")) == len(frame)


def test_a_skippable_frame_is_measured_too() -> None:
    assert measure_frame(memoryview(b"\x5a\x2a\x4d\x18\x03\0\0\0abc and more")) == 11


def test_a_frame_that_is_cut_anywhere_is_an_error() -> None:
    frame = compress(b"some text " * 20, checksum=True)
    for size in range(len(frame)):
        with pytest.raises(zstd.ZstdError):
            measure_frame(memoryview(frame[:size]))


def test_a_block_of_the_reserved_type_is_an_error() -> None:
    with pytest.raises(zstd.ZstdError, match="reserved type"):
        measure_frame(memoryview(b"\x28\xb5\x2f\xfd\x20\x00\x07\x00\x00"))


@given(st.binary(max_size=40).map(lambda rest: b"\x28\xb5\x2f\xfd" + rest))
def test_any_bytes_have_the_length_that_zstd_says_or_none(data: bytes) -> None:
    try:
        expected = zstd.get_frame_size(data)
    except zstd.ZstdError:
        expected = None
    try:
        found = measure_frame(memoryview(data))
    except zstd.ZstdError:
        found = None
    assert found == expected or expected is None


def test_a_large_frame_is_not_read_into_memory(tmp_path: Path) -> None:
    frame = compress(os.urandom(48 * MIB), level=1)
    path = tmp_path / "payload"
    path.write_bytes(frame + b"more")
    size = len(frame)
    del frame
    tracemalloc.start()
    try:
        with FileRange.whole(path).view() as data:
            assert measure_frame(data) == size
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    finally:
        tracemalloc.stop()
