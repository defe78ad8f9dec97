"""Tests of reading code objects out of kpack archives."""

from __future__ import annotations

import hashlib
import re
import resource
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.binary.kpack.archive import read_archive
from rocwheel.binary.kpack.errors import KpackError
from rocwheel.binary.kpack.read_kernel import iter_kernel, read_kernel
from rocwheel.binary.kpack.toc import Scheme
from rocwheel.binary.kpack.write_archive import compress_kernel
from rocwheel.core.compression import zstd
from tests.support.kpack_files import by_hand, frames, toc

if TYPE_CHECKING:
    from pathlib import Path

KEY = "lib/libx.so#0"


def archive_of(frame: bytes, size: int) -> bytes:
    blob = frames(frame)
    entry = {"type": "hsaco", "ordinal": 0, "original_size": size}
    places: dict[str, Any] = {"zstd_offset": 16, "zstd_size": len(blob), "blobs": None}
    return by_hand(toc(**places, compression_scheme="zstd-per-kernel", toc={KEY: {"gfx906": entry}}), blob)


def read(data: bytes, **options: int) -> memoryview:
    archive = read_archive(memoryview(data), name="x.kpack")
    return read_kernel(memoryview(data), archive, archive.entries[0], **options)


FRAME = zstd.compress(b"x" * 100_000)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (archive_of(FRAME, 99_999), "offset 0x18: a zstd frame of more than 99999 bytes; expected as many as declared"),
        (archive_of(FRAME, 100_001), "offset 0x18: a zstd frame of 100000 bytes; expected 100001, as declared"),
        (archive_of(FRAME, 0), "offset 0x18: a zstd frame of more than 0 bytes; expected as many as declared"),
        (archive_of(FRAME[:-1], 100_000), "offset 0x18: a zstd frame that ends early, after "),
        (archive_of(b"", 100_000), "offset 0x18: a zstd frame that ends early, after 0 bytes of 100000"),
        (archive_of(FRAME + b"x", 100_000), "offset 0x18: 1 byte after the end of a zstd frame; expected none"),
        (archive_of(FRAME + FRAME, 200_000), "offset 0x18: a zstd frame of 100000 bytes; expected 200000, as declared"),
        (archive_of(b"noise" * 9, 45), "offset 0x18: a damaged zstd frame ("),
        (
            by_hand(toc(toc={KEY: {"gfx906": {"ordinal": 0, "original_size": 9}}})),
            "offset 0x10: lib/libx.so#0 for gfx906 takes 8 bytes; expected 9, its declared size",
        ),
    ],
)
def test_code_object_that_is_not_as_declared_is_refused_with_its_place(data: bytes, found: str) -> None:
    with pytest.raises(KpackError, match=f"^x.kpack: {re.escape(found)}"):
        read(data)


def test_each_changed_byte_of_a_written_code_object_is_noticed() -> None:
    code = hashlib.sha512(b"code").digest() * 3
    frame = bytes(compress_kernel(memoryview(code), Scheme.ZSTD))
    whole = archive_of(frame, len(code))
    assert bytes(read(whole)) == code
    start = whole.index(frame)
    for offset in range(start, start + len(frame)):
        with pytest.raises(KpackError):
            read(whole[:offset] + bytes([whole[offset] ^ 0x08]) + whole[offset + 1 :])


def test_pieces_never_come_to_more_than_the_declared_size() -> None:
    data = archive_of(zstd.compress(bytes(64 << 20)), 9 << 20)
    archive = read_archive(memoryview(data), name="x.kpack")
    pieces: list[int] = []
    with pytest.raises(KpackError, match="a zstd frame of more than 9437184 bytes"):
        pieces.extend(map(len, iter_kernel(memoryview(data), archive, archive.entries[0])))
    assert 0 < sum(pieces) <= 9 << 20


def test_code_object_beyond_the_limit_is_not_read() -> None:
    message = "x.kpack: offset 0x18: lib/libx.so#0 for gfx906 is said to have 100000 bytes; expected at most 4096"
    with pytest.raises(KpackError, match=f"^{re.escape(message)}$"):
        read(archive_of(FRAME, 100_000), limit=4096)


def test_declared_sizes_take_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.kpack"
    path.write_bytes(archive_of(FRAME, 1 << 30))
    code = (
        "import sys; from pathlib import Path; from rocwheel.binary.kpack.archive import read_archive\n"
        "from rocwheel.binary.kpack.read_kernel import read_kernel\n"
        "from rocwheel.core.errors import InputError\n"
        "data = memoryview(Path(sys.argv[1]).read_bytes()); archive = read_archive(data, name='x')\n"
        "try: read_kernel(data, archive, archive.entries[0])\n"
        "except InputError as e: print(e)"
    )
    limit = 400 << 20
    done = subprocess.run(
        [sys.executable, "-c", code, path],
        check=True,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert "a zstd frame of 100000 bytes; expected 1073741824, as declared" in done.stdout
