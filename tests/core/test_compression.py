"""Tests of `rocwheel.core.compression`."""

from __future__ import annotations

import io
import lzma
import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from rocwheel.build.cluster.workers import worker_facts
from rocwheel.build.manifest import used_tools
from rocwheel.core import compression
from rocwheel.core.compression import BoundedStream, ExpansionError, codec_samples, codec_tools, most_unpacked, open_xz
from rocwheel.wheels import member_compression as identities
from tests.support.bombs import xz_of_gigabytes

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _clear() -> Iterator[None]:
    known = (compression.codec_sample, compression.codec_tools, identities.codec_identity, identities.xz_identity)
    for function in known:
        function.cache_clear()
    yield
    for function in known:
        function.cache_clear()


def test_codec_tools_lists_the_libraries_and_the_machine() -> None:
    assert sorted(codec_tools()) == ["deflate", "libzlib-ng", "libzstd", "machine", "zlib-ng"]


def test_workers_and_manifests_record_the_same_codecs() -> None:
    assert codec_tools().items() <= used_tools().items()
    assert codec_tools().items() <= worker_facts().versions.items()
    assert worker_facts().samples == codec_samples()


@pytest.mark.parametrize(
    ("codec", "is_quick"), [("libdeflate", True), ("zlib-ng", True), ("zstd", True), ("xz", False)]
)
def test_a_codec_with_different_output_gets_its_own_cache_entries(
    codec: str, is_quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = identities.codec_identity(), identities.xz_identity()
    pack = compression._pack
    monkeypatch.setattr(compression, "_pack", lambda name, *rest: pack(name, *rest) + b"." * (name == codec))
    for function in (compression.codec_sample, identities.codec_identity, identities.xz_identity):
        function.cache_clear()
    after = identities.codec_identity(), identities.xz_identity()
    assert (before[0] != after[0], before[1] != after[1]) == (is_quick, True)


@pytest.mark.parametrize(("codec", "level"), [("zstd", 1), ("zstd", 3), ("libdeflate", 6), ("xz", 6)])
def test_the_codec_sample_covers_the_levels_in_use(codec: str, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = codec_samples()[codec]
    pack = compression._pack
    monkeypatch.setattr(compression, "_pack", lambda name, at, data: pack(name, at, data) + b"." * (at == level))
    compression.codec_sample.cache_clear()
    assert codec_samples()[codec] != before


@pytest.mark.parametrize(
    ("packed", "unpacked"), [(0, 1 << 30), (5_368_709, 1 << 30), (5_368_710, 1_073_742_000), (1 << 30, 200 << 30)]
)
def test_the_unpacking_limit_is_one_gibibyte_or_200_times_the_packed_size(packed: int, unpacked: int) -> None:
    assert most_unpacked(packed) == unpacked


def test_a_bounded_stream_returns_data_up_to_its_limit() -> None:
    stream = BoundedStream(io.BytesIO(b"abcdef"), 6)
    assert (stream.read(4), stream.read(), stream.read(1)) == (b"abcd", b"ef", b"")


def test_a_bounded_stream_that_exceeds_its_limit_raises_an_error() -> None:
    stream = BoundedStream(io.BytesIO(b"abcdef"), 5)
    assert stream.read(4) == b"abcd"
    with pytest.raises(ExpansionError, match=r"^unpacks to more than 5 bytes$"):
        stream.read(2)


NOISE = os.urandom(300_000)


@pytest.mark.parametrize("data", [b"", b"x", NOISE, bytes(5 << 20)], ids=["empty", "byte", "noise", "zeros"])
def test_an_xz_stream_is_read_completely(data: bytes) -> None:
    assert open_xz(io.BytesIO(lzma.compress(data))).read() == data


def test_concatenated_and_padded_xz_streams_are_read_as_one() -> None:
    packed = lzma.compress(b"a") + bytes(8) + lzma.compress(NOISE) + bytes(4)
    assert open_xz(io.BytesIO(packed)).read() == b"a" + NOISE


def test_the_output_of_xz_9e_can_be_read() -> None:
    packed = subprocess.run(["xz", "-9e", "-c"], input=NOISE, capture_output=True, check=True).stdout
    assert open_xz(io.BytesIO(packed)).read() == NOISE


@pytest.mark.parametrize("kept", [0, 1, 30, -1])
def test_a_truncated_xz_stream_is_refused(kept: int) -> None:
    with pytest.raises(EOFError, match=re.escape("its stream is truncated")):
        open_xz(io.BytesIO(lzma.compress(NOISE)[:kept])).read()


def test_trailing_data_after_an_xz_stream_is_refused() -> None:
    with pytest.raises(lzma.LZMAError, match=re.escape("Input format not supported by decoder")):
        open_xz(io.BytesIO(lzma.compress(b"a") + b"something else entirely")).read()


def test_an_xz_dictionary_of_gigabytes_is_refused() -> None:
    with pytest.raises(lzma.LZMAError, match="Memory usage limit exceeded"):
        open_xz(io.BytesIO(xz_of_gigabytes())).read()
