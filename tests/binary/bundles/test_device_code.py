"""Tests of finding device code in any file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.bundles.plain import read_offload_bundle
from rocwheel.binary.code_objects.errors import Place

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.device_files import Fixture
    from tests.support.tools import RunTool

TWO = ["gfx1030", "gfx906", "gfx90a:xnack+"]


@pytest.mark.parametrize(
    ("name", "targets"),
    [
        ("v19/libtwo.plain.so", TWO),
        ("v22/libtwo.ccob.so", TWO),
        ("v19/vadd.plain.o", TWO),
        ("edge/two.v18.ccob.fatbin", TWO),
        ("edge/hostonly.hipfb", []),
        ("v19/saxpy.rdc.o", TWO),
        ("v23/saxpy.rdc.o", TWO),
        ("mach/flags.22", []),
    ],
)
def test_targets_of_any_file_are_named_once(fixture: Fixture, name: str, targets: list[str]) -> None:
    assert [str(target) for target in device_targets(fixture(name), name=name)] == targets


def test_target_of_a_code_object_by_itself_is_named(fixture: Fixture) -> None:
    data = fixture("v22/saxpy.hipfb")
    entry = read_offload_bundle(data, place=Place("x")).device_entries[3]
    assert [str(target) for target in device_targets(data[entry.offset : entry.stop], name="x.co")] == ["gfx90a:xnack+"]


def test_targets_of_a_static_library_are_those_of_its_members(
    fixture_path: Callable[[str], Path], run_tool: RunTool, tmp_path: Path
) -> None:
    archive, members = tmp_path / "libx.a", ["v19/vadd.plain.o", "v23/saxpy.rdc.o", "mach/flags.22"]
    run_tool(["ar", "rcs", str(archive), *(str(fixture_path(name)) for name in members)])
    assert [str(target) for target in device_targets(memoryview(archive.read_bytes()), name="libx.a")] == TWO
