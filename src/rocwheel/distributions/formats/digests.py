"""Digests as pages of indexes have them."""

from __future__ import annotations

import re

__all__ = ["is_sha256"]

_SHA256 = re.compile(r"[0-9a-f]{64}")


def is_sha256(text: str) -> bool:
    """Return whether a text is a SHA-256 in hexadecimal, in small letters."""
    return bool(_SHA256.fullmatch(text))
