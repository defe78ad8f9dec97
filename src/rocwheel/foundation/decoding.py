"""JSON and TOML of strangers, decoded: whatever is wrong with the text is one kind of error."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["decode_json", "decode_toml"]

T = TypeVar("T")


def decode_json(data: bytes, kind: type[T]) -> T:
    """Return a JSON document as a value of ``kind``.

    Raises `msgspec.ValidationError` for a value of another kind, and `msgspec.DecodeError`, its base, for other text.
    """
    with _one_error():
        return msgspec.json.decode(data, type=kind)


def decode_toml(data: bytes, kind: type[T]) -> T:
    """Return a TOML document as a value of ``kind``; raises as `decode_json` does."""
    with _one_error():
        return msgspec.toml.decode(data, type=kind)


@contextmanager
def _one_error() -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as e:
        raise msgspec.DecodeError(str(e)) from e
    except RecursionError as e:
        msg = "it is nested too deeply"
        raise msgspec.DecodeError(msg) from e
