"""The bytes of one entry of the cache.

All numbers are little-endian::

    16 bytes  "rocwheel entry 1"
    4         size of the facts
    8         size of the data
    32        SHA-256 of the data
    32        SHA-256 of the 60 bytes before, the key and the facts
    ...       facts, then data
"""

from __future__ import annotations

import hashlib
import struct

import msgspec

__all__ = ["DamagedEntryError", "Entry", "parse_entry", "render_head"]

_MAGIC = b"rocwheel entry 1"
_HEAD = struct.Struct("<16sIQ32s")
_CHECK = 32


class Entry(msgspec.Struct, frozen=True):
    """A value: facts, which those who keep it encode as they like, and data."""

    facts: bytes
    data: memoryview = memoryview(b"")
    sha256: bytes = b""
    """The hash of the data, where the entry was read."""


class DamagedEntryError(Exception):
    """Bytes that are not the entry of their key as it was written."""


def render_head(key: bytes, facts: bytes, size: int, sha256: bytes) -> bytes:
    """Return all bytes of an entry before its data, which has this size and hash."""
    head = _HEAD.pack(_MAGIC, len(facts), size, sha256)
    return head + hashlib.sha256(head + key + facts).digest() + facts


def parse_entry(key: bytes, raw: memoryview) -> Entry:
    """Return the entry of a key from all its bytes; raise `DamagedEntryError` if a single one is another."""
    start = _HEAD.size + _CHECK
    if len(raw) < start:
        raise DamagedEntryError
    magic, facts_size, size, sha256 = _HEAD.unpack_from(raw)
    facts, data = raw[start : start + facts_size], raw[start + facts_size :]
    check = hashlib.sha256(b"".join([raw[: _HEAD.size], key, facts])).digest()
    if magic != _MAGIC or raw[_HEAD.size : start] != check or len(data) != size:
        raise DamagedEntryError
    if hashlib.sha256(data).digest() != sha256:
        raise DamagedEntryError
    return Entry(bytes(facts), data, sha256)
