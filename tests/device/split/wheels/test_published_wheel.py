"""A published wheel of a framework, split, indexed and installed with the code for one GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.device.split.split_wheel import split_wheel
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.wheel_metadata import WheelSplitOrder
from rocwheel.index.write_index import write_index
from rocwheel.wheels.sdist import SourceDate
from tests.reference.conftest import new_environment
from tests.support.kpack_reader import ARCHIVE_NOT_FOUND, load_unit, units_of
from tests.support.loopback import served
from tests.support.published_wheels import jax_wheel
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.corpus

PLUGIN = "jax_rocm7_plugin-0.10.2"


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_host_and_one_device_wheel_are_installed_from_an_index(tmp_path: Path, tool: str) -> None:
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
