"""Compressed pieces, as xz, zstd and tar read them once joined."""

from __future__ import annotations

import lzma
import random
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.distributions.content.content import BytesContent, SequenceContent
from rocwheel.distributions.content.tar_content import TarFile, TarLink, tar_content
from rocwheel.distributions.packing.stream_codec import StreamFormat, compress_piece
from tests.distributions.doubles import read_all

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.tools import RunTool

TEXT = b"".join(b"#define HIP_%d %d\n" % (number, number) for number in range(20_000))


def pieces(content: SequenceContent | BytesContent, encoding: StreamFormat, size: int) -> bytes:
    ranges = [(start, min(start + size, content.size)) for start in range(0, content.size, size)]
    return b"".join(compress_piece(content, start, stop, encoding) for start, stop in ranges)


@pytest.mark.parametrize("size", [30_000, 65_536, 10**9], ids=["many pieces", "a few", "one"])
def test_joined_pieces_are_one_file_to_the_standard_library(size: int) -> None:
    content = BytesContent(TEXT)
    assert lzma.decompress(pieces(content, "xz", size)) == TEXT
    assert zstd.decompress(pieces(content, "zst", size)) == TEXT


@pytest.mark.parametrize(("encoding", "tool"), [("xz", "xz"), ("zst", "zstd")])
def test_the_formats_own_tools_test_and_unpack_joined_pieces(
    tmp_path: Path, run_tool: RunTool, encoding: StreamFormat, tool: str
) -> None:
    path = tmp_path / f"a.{encoding}"
    path.write_bytes(pieces(BytesContent(TEXT), encoding, 50_000))
    assert run_tool([tool, "-tq", path]) == ""
    assert run_tool([tool, "-dcq", path]) == TEXT.decode()


@pytest.mark.parametrize("encoding", ["xz", "zst"])
def test_gnu_tar_unpacks_a_tar_that_was_compressed_in_pieces(
    tmp_path: Path, run_tool: RunTool, encoding: StreamFormat
) -> None:
    noise = random.Random(1).randbytes(70_000)
    members: list[TarFile | TarLink] = [
        TarFile("include/hip.h", 0o644, BytesContent(TEXT)),
        TarFile("bin/hipcc", 0o755, BytesContent(noise)),
        TarLink("lib/libamdhip64.so", "libamdhip64.so.5"),
    ]
    path = tmp_path / f"_devel.tar.{encoding}"
    path.write_bytes(pieces(tar_content(members, mtime=0), encoding, 40_000))
    run_tool(["tar", "-xf", path, "-C", tmp_path], is_silent=True)
    assert (tmp_path / "include/hip.h").read_bytes() == TEXT
    assert (tmp_path / "bin/hipcc").read_bytes() == noise
    assert (tmp_path / "lib/libamdhip64.so").readlink().name == "libamdhip64.so.5"


@pytest.mark.parametrize("encoding", ["xz", "zst"])
def test_a_piece_of_several_buffers_is_that_of_the_joined_one(encoding: StreamFormat) -> None:
    content = SequenceContent((BytesContent(TEXT[:100]), BytesContent(TEXT[100:])))
    assert compress_piece(content, 0, content.size, encoding) == compress_piece(
        BytesContent(read_all(content)), 0, content.size, encoding
    )
