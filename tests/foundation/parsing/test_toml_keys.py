"""Dotted keys of TOML: how long they are, whatever else has dots."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fuzz.attempt import attempt
from fuzz.harness import Harness
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
        pytest.param(b'a = """b"""", ' + b"k." * 99 + b"k = 1", 100, id="behind a string that ends with a quote"),
        pytest.param(b"a = '''b''''', " + b"k." * 99 + b"k = 1", 100, id="behind a literal one with two"),
        pytest.param(b'a = """b\\""", ' + b"k." * 99 + b'"""', 1, id="in a string with an escaped quote"),
        pytest.param(b"a = [" + b"1.5, " * 99 + b"]", 2, id="numbers"),
        pytest.param(b"a = 1 # " + b"a." * 99, 1, id="in a comment"),
        pytest.param(b"a.b = 1\n" * 99, 1, id="on many lines"),
    ],
)
def test_the_parts_of_the_longest_key_are_counted(text: bytes, parts: int) -> None:
    assert longest_key(text) == parts


def test_a_key_of_thousands_of_parts_is_refused_at_once() -> None:
    """100 KB took half a minute."""
    with pytest.raises(msgspec.DecodeError, match="it has a key of 50001 parts, more than 64"):
        decode_toml(b"a." * 50_000 + b"a = 1", dict[str, Any])


@pytest.mark.parametrize(
    "word", [b"a.", b'"\\"', b'"""', b"'''", b'"', b"'", b" .", b"\\", b'"a".', b'"""\n\\', b" ", b"="], ids=str
)
def test_no_text_takes_long(word: bytes) -> None:
    """A megabyte takes a second or two; 50 KB of some took longer than `attempt` allows, 5 seconds."""
    text = b"#" + b"." * 80 + b"\n" + word * ((1 << 20) // len(word))
    assert attempt(Harness("test.keys", longest_key, lambda: [text]), text) is None
