"""Tests of `rocwheel.core.decoding`."""

from __future__ import annotations

import ast
import gc
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rocwheel.core.decoding import convert_value, decode_json, decode_toml, longest_key, parse_python, read_table
from trials.fuzz.attempt import attempt
from trials.fuzz.harness import Harness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Named(msgspec.Struct):
    """What has a name."""

    name: str


def test_json_and_toml_are_decoded_into_typed_values() -> None:
    assert decode_json(b'{"name": "a", "more": 1}', Named) == Named("a")
    assert decode_toml(b'name = "a"', Named) == Named("a")


def test_plain_values_are_converted_to_typed_values() -> None:
    assert convert_value({"name": "\udcff", "more": 1}, Named) == Named("\udcff")


@pytest.mark.parametrize("value", [{"name": 1}, {}, [], {"name": "a", "\ud800": 1}, {"\udcff": 1, "name": "a"}])
def test_an_invalid_value_always_raises_a_validation_error(value: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        convert_value(value, Named)


@pytest.mark.parametrize(
    ("decode", "data"),
    [
        (decode_json, b""),
        (decode_json, b'{"name": "\xff"}'),
        (decode_json, b'{"more": ' + b"[" * 100_000),
        (decode_json, b'{"name": 1}'),
        (decode_toml, b"name"),
        (decode_toml, b'name = "\xff"'),
        (decode_toml, b"more = " + b"[" * 5000 + b"]" * 5000),
        (decode_toml, b"name = 1"),
    ],
)
def test_invalid_text_always_raises_a_decode_error(decode: Callable[[bytes, type[Any]], Any], data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(data, Named)


@pytest.mark.parametrize("data", [b"", b" \n"])
def test_an_empty_document_is_reported_as_empty(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError, match=r"^it is empty$"):
        decode_json(data, dict[str, int])


def test_a_value_of_the_wrong_type_raises_a_validation_error() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"Expected `str`, got `int` - at `\$\.name`"):
        decode_json(b'{"name": 1}', Named)


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


def test_a_key_with_thousands_of_parts_is_refused_immediately() -> None:
    """100 KB took half a minute."""
    with pytest.raises(msgspec.DecodeError, match="it has a key with 50001 parts, more than 64"):
        decode_toml(b"a." * 50_000 + b"a = 1", dict[str, Any])


@pytest.mark.parametrize(
    "word", [b"a.", b'"\\"', b'"""', b"'''", b'"', b"'", b" .", b"\\", b'"a".', b'"""\n\\', b" ", b"="], ids=str
)
def test_scanning_any_text_for_keys_is_fast(word: bytes) -> None:
    """A megabyte takes a second or two; 50 KB of some took longer than `attempt` allows, 5 seconds."""
    text = b"#" + b"." * 80 + b"\n" + word * ((1 << 20) // len(word))
    assert attempt(Harness("test.keys", longest_key, lambda: [text]), text) is None


def test_a_module_is_parsed_into_its_syntax_tree() -> None:
    (statement,) = parse_python("x = 1").body
    assert ast.unparse(statement) == "x = 1"


@pytest.fixture
def _threads_change_at_any_object() -> Iterator[None]:
    """Collect garbage all the time, and let another thread go on each time."""
    threshold = gc.get_threshold()
    gc.set_threshold(50)
    gc.callbacks.append(_give_way)
    yield
    gc.callbacks.remove(_give_way)
    gc.set_threshold(*threshold)


def _give_way(_: object, __: object) -> None:
    time.sleep(0)


@pytest.mark.usefixtures("_threads_change_at_any_object")
def test_several_threads_can_parse_at_the_same_time() -> None:
    text = "x = " + "[" * 60 + "1" + "]" * 60
    with ThreadPoolExecutor(4) as threads:
        trees = [*threads.map(parse_python, [text] * 300)]
    assert {len(tree.body) for tree in trees} == {1}


def test_warnings_about_the_parsed_text_are_suppressed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(parse_python(r"x = '\d'").body) == 1


def test_a_syntax_error_names_the_module() -> None:
    with pytest.raises(SyntaxError, match=r"\(BUILD, line 2\)"):
        parse_python("x = 1\nx = = 2", "BUILD")


ALONE = Lock()
OVERLAP = Event()


def prepared() -> type[int]:
    """Stand for an annotation; msgspec evaluates it when it prepares the type that bears it."""
    if ALONE.acquire(blocking=False):
        OVERLAP.wait(0.3)
        ALONE.release()
    else:
        OVERLAP.set()
    return int


def test_concurrent_first_reads_of_a_table_do_not_prepare_its_type_at_once() -> None:
    table = msgspec.defstruct("Table", [("value", "prepared()", 7)], module=__name__)
    with ThreadPoolExecutor(2) as executor:
        rows = list(executor.map(lambda _: read_table("rocwheel.binary.bundles", "runtimes.toml", table), range(2)))
    assert [row.value for row in rows] == [7, 7]  # type: ignore[attr-defined]
    assert not OVERLAP.is_set()


def test_concurrent_first_decodes_of_a_document_do_not_prepare_its_type_at_once() -> None:
    document = msgspec.defstruct("Document", [("value", "prepared()", 7)], module=__name__)
    with ThreadPoolExecutor(2) as executor:
        values = list(executor.map(lambda _: decode_json(b"{}", document), range(2)))
    assert [value.value for value in values] == [7, 7]  # type: ignore[attr-defined]
    assert not OVERLAP.is_set()
