"""The checksum of an image, as pefile computes it and GNU ld writes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pefile
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.pe.bytes import PeBytes
from rocwheel.binary.pe.checksum import RunningChecksum, checksum_of
from rocwheel.binary.pe.header import read_header
from rocwheel.core.patch import Replacement

if TYPE_CHECKING:
    from rocwheel.binary.pe.header import PeHeader

FIXTURES = Path(__file__).parents[2] / "fixtures/pe"
GNU = (FIXTURES / "two-gnu.dll").read_bytes()


def header_of(data: bytes) -> PeHeader:
    return read_header(PeBytes(memoryview(data), "a.dll"))


def test_it_is_what_gnu_ld_writes() -> None:
    header = header_of(GNU)
    assert header.checksum == 0x15E63
    assert checksum_of(memoryview(GNU), header.checksum_offset) == 0x15E63


@pytest.mark.parametrize("name", ["two.dll", "api7.dll", "dep6.dll", "program.exe"])
def test_pefile_computes_the_same(name: str) -> None:
    data = (FIXTURES / name).read_bytes()
    assert checksum_of(memoryview(data), header_of(data).checksum_offset) == pefile.PE(data=data).generate_checksum()


@given(st.lists(st.tuples(st.integers(0x400, len(GNU) - 64), st.binary(min_size=1, max_size=64)), max_size=4))
def test_changes_to_some_ranges_change_it_as_if_it_were_made_anew(changes: list[tuple[int, bytes]]) -> None:
    at = header_of(GNU).checksum_offset
    data, running = bytearray(GNU), RunningChecksum(memoryview(GNU), at)
    stop = 0
    for start, new in sorted(changes):
        if start >= stop:
            stop = start + len(new)
            data[start:stop] = new
            running.change(Replacement.of(start, new))
    assert running.value(len(data)) == checksum_of(memoryview(data), at)
