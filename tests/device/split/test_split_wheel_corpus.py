"""Wheels with members, and as archives, beyond 4 GiB, which take ZIP64: split, read by other tools, and installed.

They are long runs, and take 10 GB of disk for their time.
"""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from random import Random
from typing import TYPE_CHECKING

import pytest

from rocwheel.device.split.split_wheel import split_wheel
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.wheel_metadata import WheelSplitOrder
from rocwheel.index.write_index import write_index
from rocwheel.wheels.record import RecordRow, render_record
from rocwheel.wheels.sdist import SourceDate
from tests.reference.conftest import new_environment
from tests.support.kpack_reader import ARCHIVE_NOT_FOUND, load_unit, units_of
from tests.support.loopback import served
from tests.support.places import FIXTURES
from tests.support.published_wheels import jax_wheel
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.tools import RunTool


pytestmark = pytest.mark.corpus

GIB = 1 << 30
PIECE = bytes(63 << 18) + Random(1).randbytes(1 << 18)
"""Bytes that deflate packs to less than a fiftieth; a wheel of zeros alone counts as a bomb."""
LARGE = 4 * GIB + 5 * len(PIECE)
INFO = "demo-1.0.dist-info"
TEXTS = {
    "demo/after.txt": b"behind it",
    f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n\n",
    f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_2_17_x86_64\n",
}


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    """Return a folder that is removed at once, since pytest keeps those of several runs."""
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


def finished_wheel(folder: Path, method: int) -> Path:
    """Write a wheel of one fat library and a data file of more than 4 GiB, packed by ``method``."""
    path = folder / "demo-1.0-py3-none-manylinux_2_17_x86_64.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        info = zipfile.ZipInfo("demo/large.bin")
        info.compress_type = method
        large = hashlib.sha256()
        with archive.open(info, "w", force_zip64=True) as member:
            for _ in range(LARGE // len(PIECE)):
                member.write(PIECE)
                large.update(PIECE)
        rows = [RecordRow("demo/large.bin", large.digest(), LARGE // len(PIECE) * len(PIECE))]
        library = (FIXTURES / "v22/libtwo.plain.so").read_bytes()
        for name, data in {"demo/libtwo.so": library, **TEXTS}.items():
            archive.writestr(name, data)
            rows.append(RecordRow(name, hashlib.sha256(data).digest(), len(data)))
        archive.writestr(f"{INFO}/RECORD", render_record(rows, f"{INFO}/RECORD"))
    return path


def split(wheel: Path, output: Path) -> Path:
    report = split_wheel(wheel, output, WheelSplitOrder(choice=SplitChoice()), SourceDate())
    wheel.unlink()
    assert len(report.devices) == 3
    return output / wheel.name


def test_a_member_larger_than_4_gib_is_split_and_can_be_installed(room: Path, run_tool: RunTool) -> None:
    host = split(finished_wheel(room, zipfile.ZIP_DEFLATED), room / "out")
    with zipfile.ZipFile(host) as archive:
        large = archive.getinfo("demo/large.bin")
        assert (large.file_size, archive.read("demo/after.txt")) == (LARGE, b"behind it")
    run_tool(["unzip", "-tqq", host])
    for tool in ("pip", "uv"):
        environment = new_environment(room / tool, room, tool)
        environment.installer("install", "--no-index", "--find-links", str(host.parent), "demo[device-gfx906]")
        site = environment.site / "demo"
        assert ((site / "large.bin").stat().st_size, (site / "after.txt").read_bytes()) == (LARGE, b"behind it")
        assert [path.name for path in (site / ".kpack").iterdir()] == ["libtwo.so_gfx906.kpack"]
        shutil.rmtree(room / tool)


def test_a_wheel_larger_than_4_gib_is_split_and_can_be_installed(room: Path, run_tool: RunTool) -> None:
    host = split(finished_wheel(room, zipfile.ZIP_STORED), room / "out")
    assert host.stat().st_size > 4 * GIB
    with zipfile.ZipFile(host) as archive:
        after = archive.getinfo("demo/after.txt")
        assert (after.header_offset > 4 * GIB, archive.read(after)) == (True, b"behind it")
    run_tool(["unzip", "-tqq", host])
    for tool in ("pip", "uv"):
        environment = new_environment(room / tool, room, tool)
        environment.installer("install", "--no-index", "--find-links", str(host.parent), "demo[device-gfx906]")
        assert (environment.site / "demo/after.txt").read_bytes() == b"behind it"
        shutil.rmtree(room / tool)


PLUGIN = "jax_rocm7_plugin-0.10.2"


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_the_host_and_one_device_wheel_can_be_installed_from_an_index(tmp_path: Path, tool: str) -> None:
    published = jax_wheel(PLUGIN)
    report = split_wheel(published, tmp_path / "dist", WheelSplitOrder(choice=SplitChoice()), SourceDate())
    assert (len(report.libraries), len(report.devices), report.staying) == (3, 27, ())
    # What it requires is not at hand, and is not needed to find device code.
    make_wheel(tmp_path / "dist", "jax-rocm7-pjrt", {"pjrt/__init__.py": b""}, version="0.10.2", tag="py3-none-any")
    write_index(tmp_path / "dist", tmp_path / "simple")
    environment = new_environment(tmp_path / "environment", tmp_path, tool)
    with served(tmp_path) as address:
        environment.installer("install", "--index-url", f"{address}/simple/", "jax-rocm7-plugin[device-gfx1100]")
    assert environment.dists() == ["jax_rocm7_pjrt", "jax_rocm7_plugin", "jax_rocm7_plugin_device_gfx1100"]
    units = [(environment.site / path, unit) for path in report.libraries for unit in units_of(environment.site / path)]
    assert len(units) == 4
    for path, unit in units:
        assert [type(load_unit(path, unit, ["gfx1100"], old=old)) for old in (True, False)] == [bytes, bytes]
        assert load_unit(path, unit, ["gfx1030"], old=False) == ARCHIVE_NOT_FOUND
