"""JSON and TOML that strangers wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rocwheel.foundation.parsing.decoding import convert_value, decode_json, decode_toml

if TYPE_CHECKING:
    from collections.abc import Callable


class Named(msgspec.Struct):
    """What has a name."""

    name: str


def test_documents_become_values() -> None:
    assert decode_json(b'{"name": "a", "more": 1}', Named) == Named("a")
    assert decode_toml(b'name = "a"', Named) == Named("a")


def test_plain_values_become_values() -> None:
    assert convert_value({"name": "\udcff", "more": 1}, Named) == Named("\udcff")


@pytest.mark.parametrize("value", [{"name": 1}, {}, [], {"name": "a", "\ud800": 1}, {"\udcff": 1, "name": "a"}])
def test_any_other_value_is_one_kind_of_error(value: object) -> None:
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
def test_any_other_text_is_one_kind_of_error(decode: Callable[[bytes, type[Any]], Any], data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(data, Named)


def test_a_value_of_another_kind_is_told_apart() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"Expected `str`, got `int` - at `\$\.name`"):
        decode_json(b'{"name": 1}', Named)
