"""Code objects without code: what counts is the target that their headers say."""

from __future__ import annotations

import struct

from rocwheel.binary.code_objects import CodePlace, encode_flags, parse_target_id

__all__ = ["code_object_header"]


def code_object_header(target: str) -> bytes:
    """Return the header of a code object, with nothing behind it."""
    flags = encode_flags(parse_target_id(target), place=CodePlace("test"))
    identification = b"\x7fELF\x02\x01\x01\x40\x02" + bytes(7)
    return identification + struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, 0, 0, 0, flags, 64, 56, 0, 64, 0, 0)
