"""Files for all GPUs that are made of those of all shards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.foundation.decoding import decode_json
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DIST_INFO_PATH", "declared_targets", "unite_dist_info", "unite_lines", "unite_maps"]

DIST_INFO_PATH = "share/therock/dist_info.json"
"""Where a build says which targets it is for."""
_TARGETS = "dist_amdgpu_targets"
_MOST = 64 << 20
"""Bytes of a text or table; real ones have less than one million."""

Text = tuple[str, bytes]
"""What to call a file in messages, and its bytes."""


def unite_lines(texts: Sequence[Text]) -> bytes:
    """Return all lines of all texts, each once and sorted."""
    lines = {line for _, data in texts for line in data.splitlines() if line.strip()}
    return b"".join(line + b"\n" for line in sorted(lines))


def unite_maps(tables: Sequence[Text]) -> bytes:
    """Return the msgpack map with the entries of all, in the order of their keys.

    Raises `InputError` for a table that is no such map, and for a key that two tables have with other values.
    """
    united: dict[str, msgspec.Raw] = {}
    origin: dict[str, str] = {}
    for name, data in tables:
        for key, value in _decode_map(name, data).items():
            if key in united and msgspec.msgpack.decode(united[key]) != msgspec.msgpack.decode(value):
                raise InputError(name, f"has another value for {key!r} than {origin[key]}", expected="the same in all")
            united.setdefault(key, value)
            origin.setdefault(key, name)
    return msgspec.msgpack.encode({key: united[key] for key in sorted(united)})


def _decode_map(name: str, data: bytes) -> dict[str, msgspec.Raw]:
    try:
        return msgspec.msgpack.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as e:
        raise InputError(name, f"is not a msgpack map ({e})", expected="one with a key for each target") from e


def declared_targets(name: str, data: bytes) -> tuple[str, ...]:
    """Return the targets that a build declares; raises `InputError`, led by ``name``, when the file is malformed."""
    value = _decode_info(name, data).get(_TARGETS, "")
    if not isinstance(value, str):
        raise InputError(name, f"has {value!r} for {_TARGETS}", expected="targets separated by semicolons")
    return tuple(target for target in value.split(";") if target)


def unite_dist_info(texts: Sequence[Text]) -> bytes:
    """Return the first file with the targets that any declares; raises what `declared_targets` does."""
    targets = dict.fromkeys(target for text in texts for target in declared_targets(*text))
    info = _decode_info(*texts[0]) | {_TARGETS: ";".join(targets)}
    return msgspec.json.format(msgspec.json.encode(info)) + b"\n"


def _decode_info(name: str, data: bytes) -> dict[str, Any]:
    try:
        return decode_json(data, dict[str, Any])
    except msgspec.DecodeError as e:
        raise InputError(name, f"is not a JSON object ({e})", expected="TheRock's dist_info.json") from e
