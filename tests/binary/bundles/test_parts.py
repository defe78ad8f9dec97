"""Tests of writing plain bundles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.bundles.parts import BundlePart, write_offload_bundle
from rocwheel.binary.bundles.plain import read_offload_bundle
from rocwheel.binary.code_objects.errors import Place
from rocwheel.core.reading import join_data

if TYPE_CHECKING:
    from tests.support.device_files import Fixture


PLACE = Place("x", 0x1000, 0)
SPELLINGS = st.sampled_from(
    [
        "host-x86_64-unknown-linux--",
        "hipv4-amdgcn-amd-amdhsa--gfx906",
        "hip-amdgcn-amd-amdhsa--gfx90a:xnack-",
        "hipv4-amdgcn-amd-amdhsa--gfx1030",
    ]
)
PARTS = st.lists(
    st.builds(lambda spelling, data: BundlePart(spelling, (memoryview(data),) if data else ()), SPELLINGS, st.binary()),
    max_size=6,
)


@pytest.mark.parametrize("name", ["v16/saxpy.hipfb", "v19/saxpy.hipfb", "v22/saxpy.hipfb", "edge/hostonly.hipfb"])
def test_bundle_is_written_as_clang_writes_it(fixture: Fixture, name: str) -> None:
    data = fixture(name)
    parts = [
        BundlePart(entry.spelling, (data[entry.offset : entry.stop],) if entry.size else ())
        for entry in read_offload_bundle(data, place=PLACE).entries
    ]
    assert join_data(write_offload_bundle(parts)) == data


@given(PARTS, st.sampled_from([1, 16, 4096]))
def test_written_bundle_reads_back(parts: list[BundlePart], alignment: int) -> None:
    data = join_data(write_offload_bundle(parts, alignment=alignment))
    bundle = read_offload_bundle(memoryview(data), place=PLACE)
    assert [(entry.spelling, data[entry.offset : entry.stop]) for entry in bundle.entries] == [
        (part.spelling, join_data(part.payload)) for part in parts
    ]
    assert all(entry.offset % alignment == 0 for entry in bundle.entries)
    assert bundle.size == len(data)
