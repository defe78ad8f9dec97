"""Tests of MessagePack maps."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.code_objects.errors import Place
from rocwheel.binary.kpack.errors import KpackError
from rocwheel.binary.kpack.maps import decode_map, value_end

PLACE = Place("x.kpack", 0x40)
SCALARS: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=300)
    | st.binary(max_size=300)
    | st.builds(msgspec.msgpack.Ext, st.integers(0, 127), st.binary(max_size=40))
    | st.just(datetime(2026, 1, 1, tzinfo=timezone.utc))
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda values: st.lists(values, max_size=5) | st.dictionaries(st.text(max_size=5), values, max_size=5)
)


@given(VALUES, st.binary(max_size=20))
def test_the_end_of_any_value_is_found_whatever_follows(value: object, rest: bytes) -> None:
    data = msgspec.msgpack.encode(value)
    assert value_end(data + rest, 0, PLACE) == len(data)


@given(VALUES, st.data())
def test_value_that_is_cut_off_is_refused(value: object, data: st.DataObject) -> None:
    encoded = msgspec.msgpack.encode(value)
    size = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(KpackError, match=r"^x\.kpack: offset 0x40: MessagePack that ends early"):
        value_end(encoded[:size], 0, PLACE)


def test_large_containers_are_passed_over() -> None:
    value = {"a": list(range(70000)), "b": {str(number): None for number in range(70000)}, "c": "x" * 70000}
    data = msgspec.msgpack.encode(value)
    assert value_end(data, 0, PLACE) == len(data)


@pytest.mark.parametrize("nesting", [b"\x91", b"\x81\xa0"])
def test_deep_nesting_neither_overflows_nor_takes_memory(nesting: bytes) -> None:
    data = nesting * 1_000_000
    with pytest.raises(KpackError, match="MessagePack that ends early"):
        value_end(data, 0, PLACE)


def test_deeply_nested_value_is_read_or_refused() -> None:
    value = b"\x81\xa1a" + b"\x91" * 100_000 + b"\xc0"
    assert value_end(value, 0, PLACE) == len(value)
    with pytest.raises(KpackError, match="a table that can't be read"):
        decode_map(value, "a table", PLACE)


def test_too_many_entries_are_refused_before_any_is_read() -> None:
    message = f"{PLACE}: a table of 1048577 entries; expected at most 1048576"
    with pytest.raises(KpackError, match=f"^{re.escape(message)}$"):
        decode_map(b"\xdf\x00\x10\x00\x01", "a table", PLACE)
