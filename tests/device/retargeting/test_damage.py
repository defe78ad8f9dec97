"""Damaged archives are retargeted or refused by name."""

from __future__ import annotations

from hypothesis import given, settings

from rocwheel.binary.kpack.archive import Scheme, read_archive
from rocwheel.core.errors import RocwheelError
from rocwheel.device.retarget_tree import retarget_archive
from rocwheel.targets.retarget_pairs import parse_pairs
from tests.support.damage import damaged
from tests.support.example_counts import examples
from tests.support.kpack_files import Memory, make_kpack
from tests.support.places import FIXTURES

CODE = (FIXTURES / "elf/gfx906.co").read_bytes()
ARCHIVES = [make_kpack({("lib/libx.so", unit, "gfx906"): CODE for unit in range(2)}, scheme=s) for s in Scheme]


def keys_of(content: bytes) -> set[tuple[str, int | None, str]]:
    entries = read_archive(memoryview(content), name="x").entries
    return {(entry.binary, entry.index, entry.target) for entry in entries}


@given(damaged(ARCHIVES))
@settings(max_examples=examples(200))
def test_a_damaged_archive_is_retargeted_whole_or_refused_by_name(content: bytes) -> None:
    [pair] = parse_pairs("gfx906=gfx900", force=True)
    made = Memory()
    try:
        retarget_archive(memoryview(content), made, pair, name="x.kpack")
    except RocwheelError as e:
        assert str(e).startswith("x.kpack")  # noqa: PT017
    else:
        assert keys_of(made.getvalue()) == {(*key, "gfx900") for *key, target in keys_of(content) if target == "gfx906"}
