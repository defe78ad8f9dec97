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


def test_the_tools_are_the_libraries_and_the_machine() -> None:
    assert sorted(codec_tools()) == ["deflate", "libzlib-ng", "libzstd", "machine", "zlib-ng"]


def test_workers_and_manifests_have_the_same_codecs() -> None:
    assert codec_tools().items() <= used_tools().items()
    assert codec_tools().items() <= worker_facts().versions.items()
    assert worker_facts().samples == codec_samples()


@pytest.mark.parametrize(
    ("codec", "is_quick"), [("libdeflate", True), ("zlib-ng", True), ("zstd", True), ("xz", False)]
)
def test_a_codec_that_makes_other_bytes_has_other_entries_of_the_cache(
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
def test_a_sample_is_packed_at_the_levels_in_use(codec: str, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = codec_samples()[codec]
    pack = compression._pack
    monkeypatch.setattr(compression, "_pack", lambda name, at, data: pack(name, at, data) + b"." * (at == level))
    compression.codec_sample.cache_clear()
    assert codec_samples()[codec] != before


@pytest.mark.parametrize(
    ("packed", "unpacked"), [(0, 1 << 30), (5_368_709, 1 << 30), (5_368_710, 1_073_742_000), (1 << 30, 200 << 30)]
)
def test_a_gibibyte_or_two_hundred_times_the_size_may_be_unpacked(packed: int, unpacked: int) -> None:
    assert most_unpacked(packed) == unpacked


def test_a_stream_gives_what_it_may() -> None:
    stream = BoundedStream(io.BytesIO(b"abcdef"), 6)
    assert (stream.read(4), stream.read(), stream.read(1)) == (b"abcd", b"ef", b"")


def test_a_stream_that_gives_more_ends_with_an_error() -> None:
    stream = BoundedStream(io.BytesIO(b"abcdef"), 5)
    assert stream.read(4) == b"abcd"
    with pytest.raises(ExpansionError, match=r"^unpacks to more than 5 bytes$"):
        stream.read(2)


NOISE = os.urandom(300_000)


@pytest.mark.parametrize("data", [b"", b"x", NOISE, bytes(5 << 20)], ids=["empty", "byte", "noise", "zeros"])
def test_a_stream_is_read_whole(data: bytes) -> None:
    assert open_xz(io.BytesIO(lzma.compress(data))).read() == data


def test_joined_and_padded_streams_are_one() -> None:
    packed = lzma.compress(b"a") + bytes(8) + lzma.compress(NOISE) + bytes(4)
    assert open_xz(io.BytesIO(packed)).read() == b"a" + NOISE


def test_what_xz_writes_at_its_best_is_read() -> None:
    packed = subprocess.run(["xz", "-9e", "-c"], input=NOISE, capture_output=True, check=True).stdout
    assert open_xz(io.BytesIO(packed)).read() == NOISE


@pytest.mark.parametrize("kept", [0, 1, 30, -1])
def test_a_stream_that_ends_early_is_refused(kept: int) -> None:
    with pytest.raises(EOFError, match=re.escape("its stream is truncated")):
        open_xz(io.BytesIO(lzma.compress(NOISE)[:kept])).read()


def test_anything_behind_the_stream_is_refused() -> None:
    with pytest.raises(lzma.LZMAError, match=re.escape("Input format not supported by decoder")):
        open_xz(io.BytesIO(lzma.compress(b"a") + b"something else entirely")).read()


def test_a_dictionary_of_gigabytes_is_refused() -> None:
    with pytest.raises(lzma.LZMAError, match="Memory usage limit exceeded"):
        open_xz(io.BytesIO(xz_of_gigabytes())).read()
