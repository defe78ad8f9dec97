"""``rocm-sdk doctor`` finds split wheels without the device wheel for a GPU, whoever adds and removes these."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rocwheel.device.split.files import SplitChoice
from rocwheel.device.split.split_wheel import split_wheel
from rocwheel.device.split.wheel_metadata import WheelSplitOrder
from rocwheel.sdk.rocm_sdk._gpus import GENERIC_TARGETS
from rocwheel.targets.catalog.catalog import load_catalog
from rocwheel.wheels.sdist import SourceDate
from tests.sdk.installed import FROM_INDEX
from tests.support.fat_libraries import build_fat_library, make_bundle
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

Make = Callable[..., Any]
GFX906, GFX1030, GFX1100 = 90006, 100300, 110000


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """Split a wheel with code for gfx906, gfx1030 and all of gfx11; return the folder of its parts."""
    library = build_fat_library(tmp_path / "libfat.so", [make_bundle(0, "gfx906 gfx1030 gfx11-generic")])
    wheel = make_wheel(tmp_path / "fat", "my-torch", {"torch/libfat.so": library, "torch/__init__.py": b""})
    split_wheel(wheel, tmp_path / "split", WheelSplitOrder(choice=SplitChoice()), SourceDate())
    return tmp_path / "split"


def lacking(target: str, wheel: str = "") -> list[str]:
    name = f"my-torch-device-{wheel or target}"
    command = f'pip install "my-torch[device-{wheel or target}]==1.0" {FROM_INDEX}'
    return ["error", f"my-torch finds no device code for {target}: {name} is not installed", command]


def add(environment: Any, folder: Path, *names: str) -> None:
    environment.installer("install", "--no-index", "--no-deps", "--find-links", folder, *names)


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_it_is_right_in_whatever_order_device_wheels_come_and_go(
    environment: Any, diagnose: Make, wheels: Path, tool: str
) -> None:
    made = msgspec.structs.replace(environment, tool=tool)
    assert diagnose(made, GFX906) == []
    add(made, wheels, "my-torch")
    assert diagnose(made, GFX906) == [lacking("gfx906")]
    add(made, wheels, "my-torch-device-gfx1030")
    assert diagnose(made, GFX906) == [lacking("gfx906")]
    add(made, wheels, "my-torch-device-gfx906")
    assert diagnose(made, GFX906) == []
    made.uninstall("my-torch-device-gfx1030")
    assert diagnose(made, GFX906) == []
    made.uninstall("my-torch-device-gfx906")
    assert diagnose(made, GFX906) == [lacking("gfx906")]
    made.uninstall("my-torch")
    assert diagnose(made, GFX906) == []


def test_code_for_a_generic_target_is_enough_and_other_gpus_are_named(
    environment: Any, diagnose: Make, wheels: Path
) -> None:
    add(environment, wheels, "my-torch", "my-torch-device-gfx906")

    def found() -> list[list[str]]:
        return [row for row in diagnose(environment, GFX906, GFX1100, 90010) if "my-torch" in row[1]]

    offered = "gfx906, gfx1030, gfx11-generic"
    none = ["warning", f"my-torch 1.0 has no device wheel for gfx90a; it has those for {offered}", ""]
    assert found() == [lacking("gfx1100", "gfx11-generic"), none]
    add(environment, wheels, "my-torch-device-gfx11-generic")
    assert found() == [none]


def test_a_device_wheel_that_lacks_an_archive_or_is_of_another_version_is_found(
    environment: Any, diagnose: Make, wheels: Path, tmp_path: Path
) -> None:
    add(environment, wheels, "my-torch", "my-torch-device-gfx906")
    [archive] = (environment.site / "torch/.kpack").glob("*gfx906*")
    archive.unlink()
    [(_, text, remedy)] = diagnose(environment, GFX906)
    name = "my-torch-device-gfx906"
    assert text == f"my-torch finds no device code for gfx906: {name} lacks torch/.kpack/{archive.name}"
    assert "--force-reinstall" in remedy
    other = make_wheel(tmp_path / "other", name, {"torch/.device-gfx906": b""}, version="0.9")
    environment.installer("install", "--no-deps", "--no-index", other)
    [(_, text, _)] = diagnose(environment, GFX906)
    assert text == f"my-torch finds no device code for gfx906: {name} is of version 0.9, and my-torch of 1.0"


def test_of_two_copies_the_one_counts_that_python_imports(
    environment: Any, diagnose: Make, wheels: Path, tmp_path: Path
) -> None:
    # Given other copies of a split wheel and of its device wheel in a folder that Python searches later
    add(environment, wheels, "my-torch", "my-torch-device-gfx906")
    others = {"my-torch": "9.9", "my-torch-device-gfx906": "0.9"}
    for name, version in others.items():
        folder = tmp_path / f"later/{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir(parents=True)
        needed = f"Requires-Dist: my-torch-device-gfx906=={version}; extra == 'device-gfx906'\n"
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}")
    (environment.site / "later.pth").write_text(f"{tmp_path / 'later'}\n")
    # Then the first copies fit each other
    assert diagnose(environment, GFX906) == []
    # And the later one of a package that is gone counts
    environment.uninstall("my-torch-device-gfx906")
    [(_, text, _)] = diagnose(environment, GFX906)
    assert (
        text
        == "my-torch finds no device code for gfx906: my-torch-device-gfx906 is of version 0.9, and my-torch of 1.0"
    )


def test_generic_targets_are_those_of_the_catalogue() -> None:
    assert {name: tuple(text.split()) for name, text in GENERIC_TARGETS.items()} == {
        generic.name: generic.members for generic in load_catalog().generics if generic.members
    }
