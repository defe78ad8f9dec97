"""Hashes of files that are still being written."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from rocwheel.foundation.files.hashing import following_hash
from rocwheel.foundation.files.hashing.following_hash import FollowingHash


@given(st.lists(st.binary(max_size=30)), st.integers(1, 9), st.integers(0, 20))
def test_the_hash_is_that_of_the_bytes_at_the_time_they_were_final(parts: list[bytes], step: int, behind: int) -> None:
    data = bytearray()
    reads: list[tuple[int, int]] = []

    def read(start: int, stop: int) -> bytes:
        reads.append((start, stop))
        return bytes(data[start:stop])

    before = following_hash._STEP, following_hash._BEHIND
    following_hash._STEP, following_hash._BEHIND = step, behind
    try:
        hasher = FollowingHash(read)
        for part in parts:
            start = len(data)
            data += bytes(len(part))  # the part comes first as zeros, as a header does
            data[start:] = part
            hasher.follow(len(data))
        assert hasher.finish(len(data)) == hashlib.sha256(data).hexdigest()
    finally:
        following_hash._STEP, following_hash._BEHIND = before
    assert sum(stop - start for start, stop in reads) == len(data)  # nothing is read twice
