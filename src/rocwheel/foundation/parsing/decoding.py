"""Decoding of JSON, TOML and values that anybody may have written: every fault becomes one kind of error."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import msgspec

from rocwheel.foundation.parsing.toml_keys import LONGEST_KEY, longest_key

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["convert_value", "decode_json", "decode_toml"]

T = TypeVar("T")

# msgspec resolves the annotations of a type when it first decodes one; two threads that do so at once crash.
_LOCK = Lock()


def decode_json(data: bytes, kind: type[T]) -> T:
    """Return a JSON document as a value of ``kind``; several threads may call this at once.

    Raises `msgspec.ValidationError` for a value of another kind, and `msgspec.DecodeError`, its base, for other text.
    """
    with _one_error():
        return msgspec.json.decode(data, type=kind)


def decode_toml(data: bytes, kind: type[T]) -> T:
    """Return a TOML document as a value of ``kind``; raises as `decode_json` does, also for a very long dotted key."""
    if (parts := longest_key(data)) > LONGEST_KEY:
        msg = f"it has a key of {parts} parts, more than {LONGEST_KEY}"
        raise msgspec.DecodeError(msg)
    with _one_error():
        return msgspec.toml.decode(data, type=kind)


def convert_value(value: object, kind: type[T]) -> T:
    """Return a value of dicts, lists and the like as one of ``kind``; raises `msgspec.ValidationError` for another."""
    try:
        return msgspec.convert(value, kind)
    except UnicodeEncodeError as e:  # of a key with half a character, which Python's own JSON and literals may have
        raise msgspec.ValidationError(str(e)) from e


@contextmanager
def _one_error() -> Iterator[None]:
    try:
        with _LOCK:
            yield
    except UnicodeDecodeError as e:
        raise msgspec.DecodeError(str(e)) from e
    except RecursionError as e:
        msg = "it is nested too deeply"
        raise msgspec.DecodeError(msg) from e
