"""Decodes JSON, TOML and Python that anybody may have written, and the tables that ship with rocwheel."""

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
"""Parts of a dotted key that anybody may write."""

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
"""Of strings of several lines: up to two quotes before the three that end one belong to it."""


def longest_key(text: bytes) -> int:
    """Return how many parts the longest dotted key has; of numbers and times, which have dots too, likewise.

    A key is on one line, so that lines of few dots are of no interest. Text that isn't TOML gets a number, too: what
    decodes it says what is wrong.
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
    """Yield the tokens; of a string of several lines, only what begins it."""
    at = 0
    while token := _TOKEN.match(text, at):
        yield token
        at = _end_of_string(text, token) if token["begins"] else token.end()


def _end_of_string(text: bytes, beginning: re.Match[bytes]) -> int:
    """Return where a string of several lines ends; nothing that is looked at here is looked at again."""
    for found in _ENDS[beginning["begins"]].finditer(text, beginning.end()):
        if found["end"]:
            return found.end()
    return len(text)


T = TypeVar("T")

# msgspec resolves the annotations of a type when it first decodes one; two threads that do so at once crash.
_LOCK = Lock()


def decode_json(data: bytes, kind: type[T]) -> T:
    """Return a JSON document as a value of ``kind``; several threads may call this at once.

    Raises `msgspec.ValidationError` for a value of another kind, and `msgspec.DecodeError`, its base, for other text.
    """
    if not data.strip():
        msg = "it is empty"
        raise msgspec.DecodeError(msg)
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


# Until Python 3.12, the parser counts the depth of all threads in one place: of two that parse at once, one may fail
# with "AST constructor recursion depth mismatch".
_PARSER = Lock()


def parse_python(text: str | bytes, name: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a module, called ``name`` in errors, without running it and without its warnings.

    Raises `SyntaxError`, `ValueError`, `RecursionError` or `MemoryError` for a text that Python can't read.
    """
    with _PARSER, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, name)


def read_table(package: str, name: str, kind: type[T]) -> T:
    """Return the content of the file ``name`` of ``package``; several threads may call this at once."""
    data = files(package).joinpath(name).read_bytes()
    return decode_toml(data, kind)
