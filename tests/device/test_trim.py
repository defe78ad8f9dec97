"""Tests of `rocwheel.device.trim`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.code_objects import DeviceCodeError, NotTrimmableError
from rocwheel.core.errors import InputError
from rocwheel.device.trim import plan_trim, require_trimmable
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.device_files import Fixture
    from tests.support.tools import RunTool


TRIMMABLE = "expected a library, an object file or a static library with bundles to trim, or a folder or wheel of them"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hip/realcompress", "x: offset 0x0: a program or an object file; expected a shared library."),
        (
            "v22/saxpy.hipfb",
            f"x: a file of bundles; {TRIMMABLE}",
        ),
        (
            "elf/libplain.so",
            f"x: not a fat binary; {TRIMMABLE}",
        ),
    ],
)
def test_what_is_not_a_fat_shared_library_is_refused(fixture: Fixture, name: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        plan_trim(fixture(name), name="x")


def test_thin_archive_to_trim_is_refused_as_such() -> None:
    message = f"x.a: a thin archive; {TRIMMABLE}"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        require_trimmable(memoryview(b"!<thin>\n"), name="x.a")


@pytest.mark.parametrize("linker", ["ld.bfd", "ld.lld-16"])
def test_static_position_independent_program_is_refused(run_tool: RunTool, tmp_path: Path, linker: str) -> None:
    program = tmp_path / "program"
    options = ["-pie", "--no-dynamic-linker", "--unresolved-symbols=ignore-all", "-o", str(program)]
    run_tool([linker, *options, str(FIXTURES / "v19/vadd.plain.o")])
    assert "INTERP" not in run_tool(["readelf", "-lW", str(program)])
    with pytest.raises(NotTrimmableError, match="a program or an object file; expected a shared library"):
        plan_trim(memoryview(program.read_bytes()), name="x")


def test_headers_among_the_device_code_are_refused(fixture: Fixture) -> None:
    data = bytearray(fixture("v22/libtwo.plain.so"))
    fat = read_fat_binary(memoryview(data), name="x")
    assert fat is not None
    table = bytes(data[64 : 64 + 10 * 56])
    data[fat.section.offset + 600 : fat.section.offset + 600 + len(table)] = table
    data[32:40] = (fat.section.offset + 600).to_bytes(8, "little")
    message = (
        "x: offset 0x1000: something else in .hip_fatbin; expected only device code. The free space can't be taken"
    )
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        plan_trim(memoryview(data), name="x")
