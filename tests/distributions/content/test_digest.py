"""Digests: those of ``zlib`` and ``hashlib``, in however many pieces the bytes come."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.reading import FileRange
from rocwheel.distributions.content.content import BytesContent, FileContent, SequenceContent
from rocwheel.distributions.content.digest import Digest, Hasher, digest_content
from tests.distributions.doubles import ZeroContent

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


def digest_of(data: bytes) -> Digest:
    return Digest(zlib.crc32(data), hashlib.sha256(data).digest(), len(data))


@given(st.lists(st.binary(max_size=2000), max_size=6))
def test_a_digest_is_that_of_the_joined_bytes(parts: list[bytes]) -> None:
    hasher = Hasher()
    for part in parts:
        hasher.update(part)
    assert hasher.digest() == digest_of(b"".join(parts))
    sequence = SequenceContent(tuple(map(BytesContent, parts)))
    assert digest_content(SequenceContent((sequence, BytesContent(b"tail")))) == digest_of(b"".join([*parts, b"tail"]))


def test_a_digest_of_many_steps_is_that_of_the_whole() -> None:
    size = 33 * MIB + 5
    assert digest_content(ZeroContent(size)) == digest_of(bytes(size))


def test_a_file_may_be_hashed_in_one_go(tmp_path: Path) -> None:
    path = tmp_path / "large"
    data = b"0123456789abcdef" * (2 * MIB + 1)
    path.write_bytes(data)
    hasher = Hasher()
    with FileContent(FileRange.whole(path)).open(0, len(data)) as (view,):
        hasher.update(view)
        assert view[-16:] == data[-16:]
    assert hasher.digest() == digest_of(data)


@pytest.mark.slow
def test_hashing_a_file_keeps_little_of_it_resident(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(512 << 20)
    # VmHWM, not ru_maxrss: that one begins with the size of the process that this one was forked from.
    program = """
import sys
from pathlib import Path
from rocwheel.distributions.content.content import FileContent
from rocwheel.distributions.content.digest import digest_content
from rocwheel.core.reading import FileRange
digest_content(FileContent(FileRange.whole(Path(sys.argv[1]))))
status = Path("/proc/self/status").read_text().splitlines()
print(next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:")))
"""
    done = subprocess.run([sys.executable, "-c", program, path], check=True, capture_output=True, text=True)
    assert int(done.stdout) < 256 * MIB
