"""Decodes untrusted JSON, TOML, and Python, as well as built-in tables."""

from __future__ import annotations

import ast
import re
import warnings
from contextlib import contextmanager
from importlib.resources import files
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator


LONGEST_KEY = 64
"""The maximum number of parts in a dotted key in untrusted input."""

_TOKEN = re.compile(
    rb"""
    (?P<begins> \"\"\" | ''' )
    | (?P<part> " (?: \\. | [^"\\\n] )* "? | ' [^'\n]* '? | [A-Za-z0-9_-]+ )
    | \# [^\n]*
    | (?P<dot> [ \t]* \. [ \t]* )
    | [ \t]+
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_ENDS = {
    b'"""': re.compile(rb'\\.|(?P<end>"{3,5})', re.DOTALL),
    b"'''": re.compile(rb"(?P<end>'{3,5})"),
}
"""The ends of multi-line strings. Up to two quotes before the closing three belong to the string."""


def longest_key(text: bytes) -> int:
    """Return the number of parts in the longest dotted key. Numbers and times, which also have dots, are included.

    A key is on one line, so lines with few dots are skipped. The result for text that isn't TOML is meaningless,
    because the decoder reports the error.
    """
    if max((line.count(b".") for line in text.split(b"\n")), default=0) < LONGEST_KEY:
        return 1
    longest = parts = 0
    is_joined = False
    for token in _iter_tokens(text):
        if token["part"]:
            parts = parts + 1 if is_joined else 1
            longest = max(longest, parts)
        is_joined = bool(token["dot"]) and parts > 0
        parts = parts if token["part"] or is_joined else 0
    return longest


def _iter_tokens(text: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the tokens. For a multi-line string, yield only its start."""
    at = 0
    while token := _TOKEN.match(text, at):
        yield token
        at = _end_of_string(text, token) if token["begins"] else token.end()


def _end_of_string(text: bytes, beginning: re.Match[bytes]) -> int:
    """Return the end of a multi-line string, in linear time."""
    for found in _ENDS[beginning["begins"]].finditer(text, beginning.end()):
        if found["end"]:
            return found.end()
    return len(text)


T = TypeVar("T")

# msgspec resolves a type's annotations on first use. If two threads do this at the same time, they crash.
_LOCK = Lock()


def decode_json(data: bytes, kind: type[T]) -> T:
    """Decode a JSON document as a value of ``kind``. Safe to call from several threads.

    Raises `msgspec.ValidationError` for a value of a different type, and its base `msgspec.DecodeError` for other text.
    """
    if not data.strip():
        msg = "it is empty"
        raise msgspec.DecodeError(msg)
    with _one_error():
        return msgspec.json.decode(data, type=kind)


def decode_toml(data: bytes, kind: type[T]) -> T:
    """Decode a TOML document as a value of ``kind``.

    Raises the same errors as `decode_json`, including for a very long dotted key.
    """
    if (parts := longest_key(data)) > LONGEST_KEY:
        msg = f"it has a key with {parts} parts, more than {LONGEST_KEY}"
        raise msgspec.DecodeError(msg)
    with _one_error():
        return msgspec.toml.decode(data, type=kind)


def convert_value(value: object, kind: type[T]) -> T:
    """Convert dictionaries, lists, and so on to ``kind``. Raises `msgspec.ValidationError` if the type differs."""
    try:
        return msgspec.convert(value, kind)
    except UnicodeEncodeError as e:  # raised for a key with a lone surrogate, which Python's JSON and literals allow
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


# Before Python 3.12, all threads share the parser's depth counter. If two threads parse at the same time,
# one may fail with "AST constructor recursion depth mismatch".
_PARSER = Lock()


def parse_python(text: str | bytes, name: str = "<unknown>") -> ast.Module:
    """Return a module's syntax tree without running the module and without warnings.

    Errors refer to the module as ``name``.

    Raises `SyntaxError`, `ValueError`, `RecursionError`, or `MemoryError` if Python can't parse the text.
    """
    with _PARSER, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, name)


def read_table(package: str, name: str, kind: type[T]) -> T:
    """Return the contents of the file ``name`` in ``package``. Safe to call from several threads."""
    data = files(package).joinpath(name).read_bytes()
    return decode_toml(data, kind)
