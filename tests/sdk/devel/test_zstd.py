"""The system's libzstd reads what others have compressed, and refuses what is damaged or cut off."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

WORDS = b"".join(random.Random(0).choices([b"include ", b"#define ", b"\n", b"hip"], k=300_000))


@pytest.fixture
def read(load_sdk: Callable[..., Callable[[str], ModuleType]], tmp_path: Path) -> Callable[[bytes], bytes]:
    """Return a function that reads compressed bytes by the library alone."""
    module = load_sdk()("rocm_sdk._devel_archive")
    vars(module)["MODULES"] = ()

    def read(data: bytes) -> bytes:
        (tmp_path / "data.zst").write_bytes(data)
        stream = module.open_zstd(tmp_path / "data.zst")
        if stream is None:
            pytest.skip("needs libzstd.so.1 (Debian package libzstd1)")
        with stream:
            return bytes(stream.read())

    return read


@pytest.mark.parametrize(
    "content",
    [b"", b"x", WORDS, bytes(5_000_000), random.Random(1).randbytes(400_000)],
    ids=["empty", "one byte", "words", "zeros", "random"],
)
def test_decompression_restores_the_content(read: Callable[[bytes], bytes], content: bytes) -> None:
    assert read(zstd.compress(content)) == content


def test_concatenated_frames_are_read(read: Callable[[bytes], bytes]) -> None:
    frames = [zstd.compress(part) for part in (b"one", WORDS, b"", b"three")]
    assert read(b"".join(frames)) == b"one" + WORDS + b"three"


@pytest.mark.parametrize("end", [1, 3, 4, 9, 1000, -1])
def test_truncated_data_is_refused(read: Callable[[bytes], bytes], end: int) -> None:
    with pytest.raises(EOFError, match="the compressed data ends too early"):
        read(zstd.compress(WORDS)[:end])


@pytest.mark.parametrize(
    "data", [b"no frame at all", zstd.compress(b"fine") + b"garbage", b"\x28\xb5\x2f\xfd" + b"\xff" * 99]
)
def test_invalid_data_is_refused(read: Callable[[bytes], bytes], data: bytes) -> None:
    with pytest.raises(ValueError, match=r"Unknown frame descriptor|Unsupported|parameter|corruption"):
        read(data)


def test_damage_is_always_detected_and_never_crashes_the_process(read: Callable[[bytes], bytes]) -> None:
    # Given a frame with a checksum, of which each time one byte is another
    good = zstd.compress(WORDS[:2000], options={zstd.CompressionParameter.checksum_flag: 1})
    for position in range(len(good)):
        data = bytearray(good)
        data[position] ^= 0x55
        try:
            assert read(bytes(data)) == WORDS[:2000], position
        except (ValueError, EOFError):
            continue
