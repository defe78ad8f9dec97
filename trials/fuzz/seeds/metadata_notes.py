"""Metadata notes of code objects, for harnesses of what reads or changes them."""

from __future__ import annotations

import struct

import msgspec

from tests.support.code_objects import code_object_header

__all__ = ["code_with_note", "note_seeds"]

_NOTE_AT = 64 + 56


def code_with_note(note: bytes) -> bytes:
    """Return a code object for gfx906 that has nothing but a note with this MessagePack."""
    name = b"AMDGPU\0\0"
    whole = struct.pack("<III", 7, len(note), 32) + name + note + bytes(-len(note) % 4)
    header = bytearray(code_object_header("gfx906"))
    struct.pack_into("<Q", header, 0x20, 64)
    struct.pack_into("<H", header, 0x38, 1)
    segment = struct.pack("<IIQQQQQQ", 4, 4, _NOTE_AT, 0, 0, len(whole), len(whole), 4)
    return bytes(header) + segment + whole


def note_seeds() -> list[bytes]:
    """Return MessagePack of metadata notes."""
    kernel = {".name": "add", ".symbol": "add.kd", ".kernarg_segment_size": 24, ".wavefront_size": 64}
    argument = {".size": 8, ".offset": 0, ".value_kind": "global_buffer", ".address_space": "global"}
    whole = {"amdhsa.version": [1, 2], "amdhsa.target": "amdgcn-amd-amdhsa--gfx906", "amdhsa.kernels": [kernel]}
    both = {**whole, "amdhsa.kernels": [kernel, {**kernel, ".name": "b", ".args": [argument]}]}
    return [msgspec.msgpack.encode(one) for one in (whole, both, {"amdhsa.version": [1, 0]})] + [b"\x91" * 3000]
