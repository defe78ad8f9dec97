"""Tests of joining a host wheel with device wheels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.binary.code_objects import parse_target_id
from rocwheel.core.errors import RocwheelError
from rocwheel.device.reading.extract import extract_code
from rocwheel.device.splitting.files import SplitChoice
from rocwheel.device.splitting.wheels.join_wheels import join_wheels
from rocwheel.device.splitting.wheels.order import WheelSplitOrder
from rocwheel.device.splitting.wheels.split_wheel import split_wheel
from rocwheel.targets.declaration import DECLARATION_NAME, encode_declaration
from rocwheel.wheels.sdist import SourceDate
from tests.support.fat_libraries import build_fat_library, make_bundle
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from rocwheel.device.splitting.wheels.report import WheelSplit

pytestmark = pytest.mark.slow

DATE = SourceDate()
INFO = "my_torch-1.0.dist-info"
TARGETS = "gfx906 gfx90a:xnack+ gfx90a:xnack-"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    return build_fat_library(folder / "libfat.so", [make_bundle(unit, TARGETS) for unit in (0, 1)])


@pytest.fixture
def wheel(tmp_path: Path, library: Path) -> Path:
    declaration = encode_declaration(map(parse_target_id, TARGETS.split()))
    files: dict[str, Path | bytes] = {
        "torch/__init__.py": b"import os\n",
        "torch/lib/libfat.so": library,
        "torch/lib/rocblas/library/Kernels_gfx906.hsaco": b"kernels",
        f"{INFO}/{DECLARATION_NAME}": declaration,
    }
    return make_wheel(tmp_path / "in", "my-torch", files, requires=("numpy", 'x; extra == "opt"'))


def split(wheel: Path, output: Path) -> WheelSplit:
    return split_wheel(wheel, output, WheelSplitOrder(choice=SplitChoice()), DATE)


def test_joined_wheel_holds_what_was_split(wheel: Path, tmp_path: Path) -> None:
    report = split(wheel, tmp_path / "split")
    devices = [Path(device.path) for device in report.devices]
    joined = join_wheels(Path(report.host), devices, tmp_path / "out", DATE)
    before, after = members(wheel), members(Path(joined.path))
    changed = {"torch/lib/libfat.so", f"{INFO}/RECORD"}
    assert {name for name in before if before[name] != after.get(name)} == changed
    assert after.keys() == before.keys()
    code = [
        {Path(found.path).name: Path(found.path).read_bytes() for found in extract_code(path, tmp_path / name, ())}
        for name, path in (("one", wheel), ("two", Path(joined.path)))
    ]
    assert (code[0] == code[1], len(code[0])) == (True, 6)
    assert (joined.libraries, joined.missing) == (("torch/lib/libfat.so",), ())
    assert joined.targets == ("gfx906", "gfx90a:xnack+", "gfx90a:xnack-")


def test_targets_that_no_device_wheel_brings_are_told(wheel: Path, tmp_path: Path) -> None:
    report = split(wheel, tmp_path / "split")
    joined = join_wheels(Path(report.host), [Path(report.devices[0].path)], tmp_path / "out", DATE)
    assert (joined.targets, joined.missing) == (("gfx906",), ("gfx90a:xnack+", "gfx90a:xnack-"))
    declared = msgspec.json.decode(members(Path(joined.path))[f"{INFO}/{DECLARATION_NAME}"])
    assert declared["rocm_targets"] == ["gfx906"]


def test_requirements_of_device_wheels_go_whatever_these_are_called(wheel: Path, tmp_path: Path) -> None:
    order = WheelSplitOrder(choice=SplitChoice(), device_prefix="torch-gpu")
    report = split_wheel(wheel, tmp_path / "split", order, DATE)
    joined = join_wheels(Path(report.host), [Path(device.path) for device in report.devices], tmp_path / "out", DATE)
    assert members(Path(joined.path))[f"{INFO}/METADATA"] == members(wheel)[f"{INFO}/METADATA"]


def test_wheels_that_do_not_belong_together_are_refused(wheel: Path, tmp_path: Path, library: Path) -> None:
    report = split(wheel, tmp_path / "split")
    host, first = Path(report.host), Path(report.devices[0].path)
    other = split(make_wheel(tmp_path / "in", "other", {"other/libfat.so": library}), tmp_path / "split")
    strange = Path(other.devices[0].path)
    cases = [
        ((host, [strange]), f"{strange}: doesn't require my-torch==1.0; expected a device wheel of {host}"),
        ((host, [first, first]), "is in "),
        ((host, []), "its archives are missing"),
        ((host, []), "Give the folders of the targets, too, or the device wheels."),
        ((first, [host]), f"{first}: is a device wheel; expected the host wheel. Give its host wheel first, and"),
        ((wheel, []), f"{wheel}: no library whose code is in archives"),
    ]
    for (given, devices), found in cases:
        with pytest.raises(RocwheelError) as raised:
            join_wheels(given, devices, tmp_path / "out", DATE)
        assert found in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_host_wheel_is_not_overwritten(wheel: Path, tmp_path: Path) -> None:
    report = split(wheel, tmp_path / "split")
    with pytest.raises(RocwheelError, match="would be overwritten by the joined wheel"):
        join_wheels(Path(report.host), [Path(report.devices[0].path)], tmp_path / "split", DATE)


def test_extras_that_ask_for_other_projects_stay(tmp_path: Path, library: Path) -> None:
    requires = (
        'mock; extra == "device-mock"',
        'demo-mock == 1.0; extra == "device-mock"',
        'x; extra == "device-gfx906"',
    )
    files: dict[str, Path | bytes] = {"demo/libfat.so": library}
    wheel = make_wheel(tmp_path / "in", "demo", files, requires=requires, extras=("device-mock", "device-gfx906"))
    report = split(wheel, tmp_path / "split")
    joined = join_wheels(Path(report.host), [Path(device.path) for device in report.devices], tmp_path / "out", DATE)
    name = "demo-1.0.dist-info/METADATA"
    assert members(Path(joined.path))[name] == members(wheel)[name]
    assert b"Provides-Extra: device-mock\n" in members(wheel)[name]


def test_wheels_that_the_host_wheel_does_not_ask_for_are_refused(wheel: Path, tmp_path: Path) -> None:
    report = split(wheel, tmp_path / "split")
    foreign = make_wheel(tmp_path / "in", "my-kernels", {"torch/x.py": b""}, requires=("my-torch==1.0",))
    with pytest.raises(RocwheelError) as raised:
        join_wheels(Path(report.host), [foreign], tmp_path / "out", DATE)
    assert str(raised.value) == (
        f"{foreign}: requires my-torch==1.0, which has no extra that asks for it; "
        f"expected a device wheel of {report.host}"
    )
