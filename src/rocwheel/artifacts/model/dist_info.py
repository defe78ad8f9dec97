"""``share/therock/dist_info.json``: which GPU targets a build of ROCm is for, as TheRock writes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DIST_INFO_PATH", "declared_targets", "with_declared_targets"]

DIST_INFO_PATH = "share/therock/dist_info.json"
"""Where it stands in the merged prefix."""

_TARGETS = "dist_amdgpu_targets"


def declared_targets(name: str, data: bytes) -> tuple[str, ...]:
    """Return the targets that a build declares; raises `InputError`, led by ``name``, when the file is malformed."""
    value = _decode(name, data).get(_TARGETS, "")
    if not isinstance(value, str):
        raise InputError(name, f"has {value!r} for {_TARGETS}", expected="targets separated by semicolons")
    return tuple(target for target in value.split(";") if target)


def with_declared_targets(name: str, data: bytes, targets: Iterable[str]) -> bytes:
    """Return the file with these targets in place of its own; raises `InputError` as `declared_targets` does."""
    return json.dumps(_decode(name, data) | {_TARGETS: ";".join(targets)}).encode() + b"\n"


def _decode(name: str, data: bytes) -> dict[str, Any]:
    try:
        return decode_json(data, dict[str, Any])
    except msgspec.DecodeError as e:
        raise InputError(name, f"is not a JSON object ({e})", expected="TheRock's dist_info.json") from e
