"""Tests of splitting and joining damaged files: whole, or refused by name."""

from __future__ import annotations

import pytest
from hypothesis import given

from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.elf.header import ElfError
from rocwheel.binary.kpack.markers import read_split_library
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.reading import join_data
from rocwheel.device.split.fat_file import plan_fat_file
from rocwheel.device.split.host_file import UnitLink, has_code_to_split, plan_host_file
from tests.support.damage import damaged
from tests.support.host_files import MARKERS, bundles_of, split, units_of
from tests.support.places import FIXTURES

FAT = [(FIXTURES / name).read_bytes() for name in ("v19/libtwo.plain.so", "v22/libtwo.rdc.so", "hip/realcompress")]
HOSTS = [split(content) for content in FAT]
BUNDLES = [memoryview(bundle) for bundle in bundles_of(memoryview(FAT[0]))]
MOST = 1 << 20
"""How much larger than a file all that is made of it may be, in bytes."""


def host_of(data: memoryview) -> memoryview | str:
    """Return the host file, or the error."""
    try:
        fat = read_fat_binary(data, name="libx.so")
        links = [UnitLink(number, 0) for number in range(len(fat.wrappers) if fat else 0)]
        patch = plan_host_file(data, MARKERS, links, name="libx.so")
        assert patch.size < len(data) + MOST
        return memoryview(join_data(patch.apply(data)))
    except (InputError, ProblemsError) as e:
        return str(e)


@given(damaged(FAT))
def test_damaged_file_is_split_whole_or_refused_by_name(content: bytes) -> None:
    data = memoryview(content)
    result = host_of(data)
    if isinstance(result, str):
        assert result.startswith("libx.so")
        return
    if result == data:
        return
    library = read_split_library(result, name="x")
    fat = read_fat_binary(data, name="x")
    assert fat is not None
    assert (len(library.units) if library else 0) == len(fat.wrappers)
    assert not has_code_to_split(result, name="x")


def fat_of(data: memoryview) -> memoryview | str:
    """Return the joined file, or the error."""
    try:
        fat = read_fat_binary(data, name="libx.so")
        units = [number % len(BUNDLES) for number in range(len(fat.wrappers) if fat else 0)]
        patch = plan_fat_file(data, BUNDLES, units, name="libx.so")
        assert patch.size < len(data) + MOST
        return memoryview(join_data(patch.apply(data)))
    except (InputError, ProblemsError) as e:
        return str(e)


@given(damaged(HOSTS))
def test_damaged_host_file_is_joined_or_refused_by_name(content: bytes) -> None:
    result = fat_of(memoryview(content))
    if isinstance(result, str):
        assert result.startswith("libx.so")
        return
    assert {bytes(bundle) for bundle in BUNDLES} >= set(bundles_of(result))
    assert units_of(result)


def test_segment_whose_physical_address_would_wrap_is_refused_by_name() -> None:
    data = bytearray(FAT[0])
    number = next(n for n in range(10) if data[64 + n * 56] == 1)
    data[88 + number * 56 : 96 + number * 56] = b"\xff" * 8
    assert str(host_of(memoryview(data))).startswith("libx.so: a program header that ends beyond all addresses")


def test_code_is_not_put_over_a_segment_that_is_loaded_elsewhere() -> None:
    data = bytearray(HOSTS[0])
    second = [at for at in range(64, 64 + 10 * 56, 56) if data[at] == 1][1]
    data[second + 18] += 16  # p_vaddr, a MiB further: its memory is free now, but its bytes in the file are not
    # No loader takes such a file either: it reserves memory up to the end of the last segment.
    message = (
        "^libx.so: segments from 0x0 to 0xd979, with others outside of that; expected loaded segments in the order"
    )
    with pytest.raises(ElfError, match=message):
        plan_fat_file(memoryview(data), BUNDLES[:1], [0, 0], name="libx.so")
