"""Offload bundles whose code is a few bytes that mean nothing: only their targets count."""

from __future__ import annotations

import struct

__all__ = ["bundle_of"]


def bundle_of(*targets: str, kind: str = "hipv4") -> bytes:
    """Return an offload bundle with an empty entry for the host and one of four bytes for each target."""
    ids = ["host-x86_64-unknown-linux-gnu", *(f"{kind}-amdgcn-amd-amdhsa--{target}" for target in targets)]
    header = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(ids))
    for number, text in enumerate(ids):
        header += struct.pack("<QQQ", 4096 * max(number, 1), 4 if number else 0, len(text)) + text.encode()
    body = bytearray(header.ljust(4096 * len(ids), b"\0"))
    return bytes(body[: 4096 * (len(ids) - 1) + 4])
