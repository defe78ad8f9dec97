"""Streams of xz, whole, joined, damaged, and with a dictionary that takes gigabytes."""

from __future__ import annotations

import io
import lzma
import os
import re
import subprocess

import pytest

from rocwheel.foundation.compression.xz import open_xz
from tests.support.bombs import xz_of_gigabytes

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
    with pytest.raises(EOFError, match=re.escape("it ends before the end of its stream")):
        open_xz(io.BytesIO(lzma.compress(NOISE)[:kept])).read()


def test_anything_behind_the_stream_is_refused() -> None:
    with pytest.raises(lzma.LZMAError, match=re.escape("Input format not supported by decoder")):
        open_xz(io.BytesIO(lzma.compress(b"a") + b"something else entirely")).read()


def test_a_dictionary_of_gigabytes_is_refused() -> None:
    with pytest.raises(lzma.LZMAError, match="Memory usage limit exceeded"):
        open_xz(io.BytesIO(xz_of_gigabytes())).read()
