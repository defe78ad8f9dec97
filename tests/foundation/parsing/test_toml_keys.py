"""Dotted keys of TOML: how long they are, whatever else has dots."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from rocwheel.foundation.parsing.decoding import decode_toml
from rocwheel.foundation.parsing.toml_keys import longest_key


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param(b"a." * 99 + b"a = 1", 100, id="of bare words"),
        pytest.param(b"[" + b' \'a\' . "b.\\"c" . ' * 49 + b"d]", 99, id="of strings, with blanks"),
        pytest.param(b'a = "' + b"a." * 99 + b'"', 1, id="in a string"),
        pytest.param(b'a = """\n' + b"a." * 99 + b'\n"""', 1, id="in a string of several lines"),
        pytest.param(b"a = '''\n" + b"a." * 99 + b"'''", 1, id="in a literal string of several lines"),
        pytest.param(b"a = [" + b"1.5, " * 99 + b"]", 2, id="numbers"),
        pytest.param(b"a = 1 # " + b"a." * 99, 1, id="in a comment"),
        pytest.param(b"a.b = 1\n" * 99, 1, id="on many lines"),
    ],
)
def test_the_parts_of_the_longest_key_are_counted(text: bytes, parts: int) -> None:
    assert longest_key(text) == parts


def test_a_key_of_thousands_of_parts_is_refused_at_once() -> None:
    """100 KB took half a minute."""
    start = time.process_time()
    with pytest.raises(msgspec.DecodeError, match="it has a key of 50001 parts, more than 64"):
        decode_toml(b"a." * 50_000 + b"a = 1", dict[str, Any])
    assert time.process_time() - start < 2


@pytest.mark.parametrize("word", [b"a.", b'"\\"', b'"""', b"'''", b'"', b"'", b" .", b"\\", b'"a".'], ids=str)
def test_no_text_takes_long(word: bytes) -> None:
    start = time.process_time()
    longest_key(word * ((1 << 20) // len(word)) + b"." * 99)
    assert time.process_time() - start < 5
