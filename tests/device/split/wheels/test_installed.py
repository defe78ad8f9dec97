"""Split wheels in real environments: installed by pip and uv from an index, used, and removed in any order."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.device.split.split_wheel import split_wheel
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.wheel_metadata import WheelSplitOrder
from rocwheel.index.write_index import write_index
from rocwheel.wheels.sdist import SourceDate
from tests.reference.conftest import new_environment
from tests.support.fat_libraries import build_fat_library, code_of, make_bundle
from tests.support.kpack_reader import ARCHIVE_NOT_FOUND, load_unit, units_of
from tests.support.loopback import served
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.sdk.installed import Installed

pytestmark = pytest.mark.slow

NAMES = ("my-torch", "my-torch-device-gfx906", "my-torch-device-gfx1100", "my-torch-device-gfx11")
ORDERS = list(permutations(NAMES))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Split a wheel and serve an index of its parts on this machine; give its address."""
    folder = tmp_path_factory.mktemp("index")
    library = build_fat_library(folder / "libfat.so", [make_bundle(0, "gfx906 gfx1100")])
    files: dict[str, Path | bytes] = {
        "torch/__init__.py": b"",
        "torch/lib/libfat.so": library,
        "torch/lib/aotriton.images/amd-gfx11xx/flash/a.aks2": b"image",
        "torch/lib/aotriton.images/amd-gfx906/flash/a.aks2": b"image",
    }
    wheel = make_wheel(folder / "fat", "my-torch", files, tag="py3-none-manylinux_2_17_x86_64")
    split_wheel(wheel, folder / "dist", WheelSplitOrder(choice=SplitChoice()), SourceDate())
    write_index(folder / "dist", folder / "simple")

    with served(folder) as address:
        yield f"{address}/simple/"


def make(tmp_path: Path, tool: str) -> Installed:
    return new_environment(tmp_path / "environment", tmp_path, tool)


def install(environment: Installed, index: str, *requirements: str) -> None:
    environment.installer("install", "--index-url", index, *requirements)


def code_found(environment: Installed, target: str) -> bytes | str:
    path = environment.site / "torch/lib/libfat.so"
    [unit] = units_of(path)
    return load_unit(path, unit, [target], old=False)


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_the_extra_of_a_target_brings_its_code_alone(index: str, tmp_path: Path, tool: str) -> None:
    environment = make(tmp_path, tool)
    install(environment, index, "my-torch[device-gfx1100]")
    assert environment.dists() == ["my_torch", "my_torch_device_gfx11", "my_torch_device_gfx1100"]
    assert code_found(environment, "gfx1100") == code_of(0, "gfx1100")
    assert code_found(environment, "gfx906") == ARCHIVE_NOT_FOUND
    install(environment, index, "my-torch-device-gfx906")
    assert code_found(environment, "gfx906") == code_of(0, "gfx906")


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_wheels_are_removed_in_any_order_and_nothing_stays(index: str, tmp_path: Path, tool: str) -> None:
    environment = make(tmp_path, tool)
    before = environment.files()
    for order in ORDERS[:: 5 if tool == "uv" else 11]:
        install(environment, index, "my-torch[device-all]")
        assert len(environment.dists()) == 4
        for name in order:
            environment.uninstall(name)
            if "my_torch" in environment.dists():
                for target in ("gfx906", "gfx1100"):
                    is_there = f"my_torch_device_{target}" in environment.dists()
                    assert code_found(environment, target) == (code_of(0, target) if is_there else ARCHIVE_NOT_FOUND)
        assert environment.files() == before, order


def test_both_tools_may_work_on_one_environment(index: str, tmp_path: Path) -> None:
    environment = make(tmp_path, "uv")
    before = environment.files()
    install(environment, index, "my-torch[device-all]")
    pip = msgspec.structs.replace(environment, tool="pip")
    pip.uninstall("my-torch-device-gfx906", "my-torch")
    environment.uninstall("my-torch-device-gfx11")
    pip.uninstall("my-torch-device-gfx1100")
    assert environment.files() == before
