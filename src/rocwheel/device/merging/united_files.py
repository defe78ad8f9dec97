"""Files for all GPUs that combine those of all shards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.artifacts.model.dist_info import declared_targets, with_declared_targets
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LARGEST", "unite_dist_info", "unite_lines", "unite_maps"]

LARGEST = 64 << 20
"""Bytes of a text or table that is read; real ones have less than one million."""

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
            if key in united and _decode(origin[key], united[key]) != _decode(name, value):
                raise InputError(name, f"has another value for {key!r} than {origin[key]}", expected="the same in all")
            united.setdefault(key, value)
            origin.setdefault(key, name)
    return msgspec.msgpack.encode({key: united[key] for key in sorted(united)})


def _decode_map(name: str, data: bytes) -> dict[str, msgspec.Raw]:
    table: dict[str, msgspec.Raw] = _decode(name, data, dict[str, msgspec.Raw])
    return table


def _decode(name: str, data: bytes | msgspec.Raw, type_: Any = Any) -> Any:
    try:
        return msgspec.msgpack.decode(data, type=type_)
    # A value that stays as it is isn't read, and may be damaged or nested too deeply.
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as e:
        raise InputError(name, f"is not a msgpack map ({e})", expected="one with a key for each target") from e


def unite_dist_info(texts: Sequence[Text]) -> bytes:
    """Return the first file with the targets that any declares; raises what `declared_targets` does."""
    targets = dict.fromkeys(target for text in texts for target in declared_targets(*text))
    return with_declared_targets(*texts[0], targets)
