"""Tests of `rocwheel.artifacts.shards`."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.artifacts.shards import unite_dist_info, unite_lines, unite_maps
from rocwheel.core.errors import InputError

TABLES = st.dictionaries(st.text(max_size=5), st.integers(-5, 5), max_size=4)


def test_merged_lines_are_unique_and_sorted() -> None:
    assert unite_lines([("a", b"b\r\n\na\n"), ("b", b"a")]) == b"a\nb\n"


@given(st.lists(TABLES, min_size=1, max_size=3))
def test_maps_merge_in_any_order_or_are_refused(tables: list[dict[str, int]]) -> None:
    texts = [(f"{number}", msgspec.msgpack.encode(table)) for number, table in enumerate(tables)]
    keys = {key for table in tables for key in table}
    if any(len({table[key] for table in tables if key in table}) > 1 for key in keys):
        with pytest.raises(InputError, match=r"differs from . in the value of"):
            unite_maps(texts)
    else:
        united = unite_maps(texts)
        assert msgspec.msgpack.decode(united) == {key: table[key] for table in tables for key in table}
        assert unite_maps(texts[::-1]) == united


@given(st.binary(max_size=40))
def test_any_table_is_merged_or_reported_by_name(data: bytes) -> None:
    try:
        assert isinstance(unite_maps([("x", data)]), bytes)
    except InputError as e:
        assert e.source == "x"  # noqa: PT017 (either is right)


def test_merged_declarations_keep_all_targets_in_order() -> None:
    texts = [
        ("a", b'{"dist_amdgpu_targets": "gfx942;gfx906", "x": 1}'),
        ("b", b'{"dist_amdgpu_targets": "gfx906;gfx1100"}'),
    ]
    assert msgspec.json.decode(unite_dist_info(texts)) == {"dist_amdgpu_targets": "gfx942;gfx906;gfx1100", "x": 1}


@pytest.mark.parametrize("value", [b"\x91\x81\xa1\x9d\xc0", b"\x91" * 5000 + b"\xc0", b"\xc1"])
def test_a_damaged_value_in_two_tables_is_refused(value: bytes) -> None:
    data = b"\x81\xa1b" + value
    with pytest.raises(InputError, match=r"^a\.dat: is not a msgpack map \("):
        unite_maps([("a.dat", data), ("b.dat", data)])
