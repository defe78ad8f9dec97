"""Rows of RECORD compared with what they are about (recording installed projects; :pep:`376`)."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from rocwheel.foundation.messages.counting import count
from rocwheel.verifying.values import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocwheel.distributions.formats.record import RecordEntry

__all__ = ["row_fault"]

_STRONG = frozenset({"sha256", "sha384", "sha512"})
"""The algorithms that the format of wheels allows, of those that every Python has."""


def row_fault(row: RecordEntry, place: str, size: int, digest: Callable[[str], bytes]) -> Fault | None:
    """Return what is wrong with a file by its row; ``digest`` hashes it by an algorithm.

    A size is compared where the row has one. Raises what ``digest`` raises.
    """
    algorithm, _, text = row.hash.partition("=")
    if algorithm not in _STRONG:
        found = f"has a hash by {algorithm} alone in RECORD" if algorithm else "has no hash in RECORD"
        return Fault("unlisted", place, found, "one by sha256, sha384 or sha512")
    if row.size and row.size != str(size):
        return Fault("changed", place, f"has {count(size, 'byte')}", f"{row.size} as RECORD has it")
    found_hash, expected = digest(algorithm), _decoded(text)
    if found_hash == expected:
        return None
    wanted = expected.hex() if expected else f"{row.hash} as RECORD has it"
    return Fault("changed", place, f"has the {algorithm} {found_hash.hex()}", wanted)


def _decoded(text: str) -> bytes:
    """Return a hash that is spelled in URL-safe base64 without padding; empty for another spelling."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""
