"""Tests of wheels that another tool has split with wrong indices."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.core.errors import RocwheelError
from rocwheel.device.splitting.files import SplitChoice
from rocwheel.device.splitting.planning.units import Unit
from rocwheel.device.splitting.wheels.join_wheels import join_wheels
from rocwheel.device.splitting.wheels.mend_wheels import mend_wheels
from rocwheel.device.splitting.wheels.order import WheelSplitOrder
from rocwheel.device.splitting.wheels.split_wheel import split_wheel
from rocwheel.wheels.metadata import add_requirements, parse_core_metadata
from rocwheel.wheels.sdist import SourceDate
from tests.support.fat_libraries import build_fat_library, make_bundle, require_same_code, two_units
from tests.support.kpack_files import make_kpack
from tests.support.wheels import make_wheel, members, write_wheel

if TYPE_CHECKING:
    from rocwheel.device.splitting.wheels.report import WheelSplit

pytestmark = pytest.mark.slow

ORDER = WheelSplitOrder(choice=SplitChoice())
OWN = ("rocm-sdk-device-@GFXARCH@ == 7.14", "rocm-bootstrap")


@pytest.fixture
def shifted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return wheels as AMD's tool makes them where the first unit lacks gfx1030: the archive has the second as 0."""
    first, second = two_units()
    library = build_fat_library(tmp_path / "libx.so", [make_bundle(unit, "gfx906 gfx1030") for unit in range(2)])
    wheel = make_wheel(tmp_path / "fat", "demo", {"demo/lib/libx.so": library, "demo/x.py": b""})
    order = msgspec.structs.replace(ORDER, device_prefix="amd-demo-device", device_requires=OWN)
    with monkeypatch.context() as patched:
        patched.setattr(Unit, "spellings", ())
        report = split_wheel(wheel, tmp_path / "amd", order, SourceDate())
    archives = {
        "gfx906": {("lib/libx.so", 0, "gfx906"): first["gfx906"], ("lib/libx.so", 1, "gfx906"): second["gfx906"]},
        "gfx1030": {("lib/libx.so", 0, "gfx1030"): second["gfx1030"]},
    }
    for device in report.devices:
        replace_archive(Path(device.path), make_kpack(archives[device.target]))
    return [Path(report.host), *(Path(device.path) for device in report.devices)]


def replace_archive(wheel: Path, data: bytes) -> None:
    """Put an archive into a device wheel, without the file for pip, which AMD's tool doesn't write."""
    files = {name: content for name, content in members(wheel).items() if ".device-" not in name}
    [info] = {name.partition("/")[0] for name in files if ".dist-info/" in name}
    del files[f"{info}/RECORD"]
    write_wheel(wheel, info, {name: data if name.endswith(".kpack") else text for name, text in files.items()})


def mended(paths: list[Path], output: Path) -> WheelSplit:
    [report] = mend_wheels(paths, output, ORDER, SourceDate())
    return report


def test_a_mended_wheel_gives_each_gpu_its_code(shifted: list[Path], tmp_path: Path) -> None:
    report = mended(shifted[::-1], tmp_path / "out")
    assert (report.mended, report.warnings) == (("demo/lib/libx.so",), ())
    for path in (report.host, *(device.path for device in report.devices)):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(tmp_path / "site")
    first, second = two_units()
    right = [{"gfx906": first["gfx906"]}, {target: second[target] for target in ("gfx906", "gfx1030")}]
    assert require_same_code(tmp_path / "site/demo/lib/libx.so", right) > 0


def test_mended_wheels_keep_their_names_and_requirements(shifted: list[Path], tmp_path: Path) -> None:
    report = mended(shifted, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(path.name for path in shifted)
    for path in shifted:
        [name] = [name for name in members(path) if name.endswith("/METADATA")]
        assert members(tmp_path / "out" / path.name)[name] == members(path)[name]
    assert len(report.devices) == 2


def test_mended_device_wheels_require_no_more_than_they_did(shifted: list[Path], tmp_path: Path) -> None:
    own = {
        "gfx906": ["only-for-906", "tuning-gfx906-strict==1", "kernels-gfx906"],
        "gfx1030": ["kernels-gfx1030", "tuning-gfx906"],
    }
    for path in shifted[1:]:
        add_requirements_to(path, own[path.name.split("-")[0].rpartition("_")[2]])
    report = mended(shifted, tmp_path / "out")
    assert {device.target: requirements(Path(device.path)) for device in report.devices} == {
        target: ["demo==1.0", f"rocm-sdk-device-{target}==7.14", "rocm-bootstrap", *own[target]]
        for target in ("gfx906", "gfx1030")
    }


def add_requirements_to(wheel: Path, texts: list[str]) -> None:
    files = members(wheel)
    [info] = {name.partition("/")[0] for name in files if ".dist-info/" in name}
    del files[f"{info}/RECORD"]
    files[f"{info}/METADATA"] = add_requirements(files[f"{info}/METADATA"], texts)
    write_wheel(wheel, info, files)


def requirements(wheel: Path) -> list[str]:
    [text] = [text for name, text in members(wheel).items() if name.endswith("/METADATA")]
    return parse_core_metadata(text)[0]["requires_dist"]


def test_joining_warns_and_puts_units_where_they_belong(shifted: list[Path], tmp_path: Path) -> None:
    report = join_wheels(shifted[0], shifted[1:], tmp_path / "fat again", SourceDate())
    [warning] = report.warnings
    assert "libx.so_gfx1030.kpack lacks 1 unit (1)" in warning
    assert "others are under wrong indices (0 is 1)" in warning


def test_wheels_whose_code_cannot_be_told_apart_are_refused(shifted: list[Path], tmp_path: Path) -> None:
    with pytest.raises(RocwheelError, match=r"units are missing from .*!demo/\.kpack/libx\.so_gfx1030\.kpack"):
        mend_wheels([shifted[0], shifted[-1]], tmp_path / "out", ORDER, SourceDate())
    assert not (tmp_path / "out").exists()


def test_the_wheels_to_mend_are_not_overwritten(shifted: list[Path]) -> None:
    before = [path.read_bytes() for path in shifted]
    with pytest.raises(RocwheelError, match="would be overwritten"):
        mend_wheels(shifted, shifted[0].parent, ORDER, SourceDate())
    assert [path.read_bytes() for path in shifted] == before


def test_wheels_with_right_indices_stay_as_they_are(tmp_path: Path) -> None:
    library = build_fat_library(tmp_path / "libx.so", [make_bundle(unit, "gfx906 gfx1030") for unit in range(2)])
    wheel = make_wheel(tmp_path / "fat", "demo", {"demo/lib/libx.so": library})
    first = split_wheel(wheel, tmp_path / "one", ORDER, SourceDate())
    paths = [Path(first.host), *(Path(device.path) for device in first.devices)]
    assert mended(paths, tmp_path / "two").mended == ()
    for path in paths:
        assert members(tmp_path / "two" / path.name) == members(path)
