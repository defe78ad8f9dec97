"""The bytes of entries: as documented, and not one of them may change."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.foundation.cache.entry import DamagedEntryError, Entry, parse_entry, render_head

KEY = hashlib.sha256(b"key").digest()


def entry_bytes(facts: bytes, data: bytes, key: bytes = KEY) -> bytes:
    return render_head(key, facts, len(data), hashlib.sha256(data).digest()) + data


def test_an_entry_has_the_documented_layout() -> None:
    raw = entry_bytes(b"facts", b"packed bytes")
    head = b"rocwheel entry 1" + (5).to_bytes(4, "little") + (12).to_bytes(8, "little")
    head += hashlib.sha256(b"packed bytes").digest()
    assert raw == head + hashlib.sha256(head + KEY + b"facts").digest() + b"facts" + b"packed bytes"


@given(st.binary(max_size=50), st.binary(max_size=300))
def test_what_was_written_is_read_back(facts: bytes, data: bytes) -> None:
    entry = parse_entry(KEY, memoryview(entry_bytes(facts, data)))
    assert entry == Entry(facts, memoryview(data), hashlib.sha256(data).digest())


@given(st.binary(max_size=20), st.binary(max_size=20), st.integers(0), st.integers(0, 7))
def test_any_flipped_bit_is_found(facts: bytes, data: bytes, place: int, bit: int) -> None:
    raw = bytearray(entry_bytes(facts, data))
    raw[place % len(raw)] ^= 1 << bit
    with pytest.raises(DamagedEntryError):
        parse_entry(KEY, memoryview(raw))


@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_no_entry(raw: bytes) -> None:
    with pytest.raises(DamagedEntryError):
        parse_entry(KEY, memoryview(raw))


@given(st.integers(0, 150), st.binary(min_size=1, max_size=3))
def test_an_entry_that_was_cut_or_grew_is_damaged(size: int, more: bytes) -> None:
    raw = entry_bytes(b"facts", b"data" * 20)
    for changed in (raw[:size], raw + more):
        with pytest.raises(DamagedEntryError):
            parse_entry(KEY, memoryview(changed))


def test_the_entry_of_another_key_is_damaged() -> None:
    with pytest.raises(DamagedEntryError):
        parse_entry(hashlib.sha256(b"other").digest(), memoryview(entry_bytes(b"facts", b"data")))
