"""Streams of xz as the SDK's packages read them: whole, joined, damaged, and with a dictionary of gigabytes."""

from __future__ import annotations

import lzma
import random
from typing import TYPE_CHECKING

import pytest

from tests.support.bombs import xz_of_gigabytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

NOISE = random.Random(1).randbytes(400_000)


@pytest.fixture
def read(load_sdk: Callable[..., Callable[[str], ModuleType]], tmp_path: Path) -> Callable[[bytes], bytes]:
    """Return a function that reads compressed bytes."""
    module = load_sdk()("rocm_sdk._devel_archive")

    def read(data: bytes) -> bytes:
        (tmp_path / "data.xz").write_bytes(data)
        with module.open_xz(tmp_path / "data.xz") as stream:
            return bytes(stream.read())

    return read


@pytest.mark.parametrize("content", [b"", b"x", bytes(5_000_000), NOISE], ids=["empty", "one byte", "zeros", "random"])
def test_decompression_restores_the_content(read: Callable[[bytes], bytes], content: bytes) -> None:
    assert read(lzma.compress(content)) == content


def test_concatenated_streams_with_padding_are_read(read: Callable[[bytes], bytes]) -> None:
    streams = [
        lzma.compress(b"one"),
        bytes(8),
        lzma.compress(NOISE),
        lzma.compress(b""),
        lzma.compress(b"end"),
        bytes(4),
    ]
    assert read(b"".join(streams)) == b"one" + NOISE + b"end"


@pytest.mark.parametrize("end", [0, 1, 9, 1000, -1])
def test_truncated_data_is_refused(read: Callable[[bytes], bytes], end: int) -> None:
    with pytest.raises(EOFError, match="the compressed data ends too early"):
        read(lzma.compress(NOISE)[:end])


@pytest.mark.parametrize("data", [b"no stream at all", lzma.compress(b"fine") + b"garbage that is none"])
def test_invalid_data_is_refused(read: Callable[[bytes], bytes], data: bytes) -> None:
    with pytest.raises(lzma.LZMAError, match="Input format not supported by decoder"):
        read(data)


def test_a_dictionary_of_several_gigabytes_is_refused(read: Callable[[bytes], bytes]) -> None:
    with pytest.raises(lzma.LZMAError, match="Memory usage limit exceeded"):
        read(xz_of_gigabytes())
