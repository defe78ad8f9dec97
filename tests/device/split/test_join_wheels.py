"""Tests of `rocwheel.device.split.join_wheels`."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.binary.code_objects import parse_target_id
from rocwheel.core.errors import RocwheelError
from rocwheel.device.extract import extract_code
from rocwheel.device.split.join_wheels import join_wheels, resplit_wheels
from rocwheel.device.split.split_wheel import split_wheel
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.units import BundleUnit
from rocwheel.device.split.wheel_metadata import WheelSplitOrder
from rocwheel.targets.declaration import DECLARATION_NAME, encode_declaration
from rocwheel.wheels.metadata import add_requirements, parse_core_metadata
from rocwheel.wheels.sdist import SourceDate
from tests.support.fat_libraries import build_fat_library, make_bundle, require_same_code, two_units
from tests.support.kpack_files import make_kpack
from tests.support.wheels import make_wheel, members, write_wheel

if TYPE_CHECKING:
    from rocwheel.device.split.split_wheel import WheelSplit


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


def test_a_joined_wheel_contains_the_code_that_was_split(wheel: Path, tmp_path: Path) -> None:
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


def test_targets_without_a_device_wheel_are_reported_as_missing(wheel: Path, tmp_path: Path) -> None:
    report = split(wheel, tmp_path / "split")
    joined = join_wheels(Path(report.host), [Path(report.devices[0].path)], tmp_path / "out", DATE)
    assert (joined.targets, joined.missing) == (("gfx906",), ("gfx90a:xnack+", "gfx90a:xnack-"))
    declared = msgspec.json.decode(members(Path(joined.path))[f"{INFO}/{DECLARATION_NAME}"])
    assert declared["rocm_targets"] == ["gfx906"]


def test_requirements_for_device_wheels_are_removed_with_any_prefix(wheel: Path, tmp_path: Path) -> None:
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
        ((host, [first, first]), f"{first}; expected each member in only one wheel"),
        ((host, []), "the archives with its code are missing"),
        ((host, []), "Also specify the targets' folders, or the device wheels."),
        ((first, [host]), f"{first}: is a device wheel; expected the host wheel. Specify the host wheel first, and"),
        ((wheel, []), f"{wheel}: no library with code in archives"),
    ]
    for (given, devices), found in cases:
        with pytest.raises(RocwheelError) as raised:
            join_wheels(given, devices, tmp_path / "out", DATE)
        assert found in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_the_host_wheel_is_not_overwritten(wheel: Path, tmp_path: Path) -> None:
    report = split(wheel, tmp_path / "split")
    with pytest.raises(RocwheelError, match="would be overwritten by the joined wheel"):
        join_wheels(Path(report.host), [Path(report.devices[0].path)], tmp_path / "split", DATE)


def test_extras_that_require_other_projects_are_kept(tmp_path: Path, library: Path) -> None:
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


def test_wheels_that_the_host_wheel_does_not_require_are_refused(wheel: Path, tmp_path: Path) -> None:
    report = split(wheel, tmp_path / "split")
    foreign = make_wheel(tmp_path / "in", "my-kernels", {"torch/x.py": b""}, requires=("my-torch==1.0",))
    with pytest.raises(RocwheelError) as raised:
        join_wheels(Path(report.host), [foreign], tmp_path / "out", DATE)
    assert str(raised.value) == (
        f"{foreign}: requires my-torch==1.0, which has no extra that requests this wheel; "
        f"expected a device wheel of {report.host}"
    )


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
        patched.setattr(BundleUnit, "spellings", ())
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
    [report] = resplit_wheels(paths, output, ORDER, SourceDate())
    return report


def test_a_mended_wheel_provides_each_gpu_with_its_code(shifted: list[Path], tmp_path: Path) -> None:
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


def test_mended_device_wheels_keep_only_their_own_requirements(shifted: list[Path], tmp_path: Path) -> None:
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


def test_joining_reports_and_corrects_wrong_unit_indices(shifted: list[Path], tmp_path: Path) -> None:
    report = join_wheels(shifted[0], shifted[1:], tmp_path / "fat again", SourceDate())
    [warning] = report.warnings
    assert "libx.so_gfx1030.kpack lacks 1 unit (1)" in warning
    assert "other units have wrong indices (0 should be 1)" in warning


def test_wheels_whose_units_cannot_be_identified_are_refused(shifted: list[Path], tmp_path: Path) -> None:
    with pytest.raises(RocwheelError, match=r"units are missing from .*!demo/\.kpack/libx\.so_gfx1030\.kpack"):
        resplit_wheels([shifted[0], shifted[-1]], tmp_path / "out", ORDER, SourceDate())
    assert not (tmp_path / "out").exists()


def test_the_input_wheels_are_not_overwritten(shifted: list[Path]) -> None:
    before = [path.read_bytes() for path in shifted]
    with pytest.raises(RocwheelError, match="would be overwritten"):
        resplit_wheels(shifted, shifted[0].parent, ORDER, SourceDate())
    assert [path.read_bytes() for path in shifted] == before


def test_wheels_with_correct_indices_are_not_changed(tmp_path: Path) -> None:
    library = build_fat_library(tmp_path / "libx.so", [make_bundle(unit, "gfx906 gfx1030") for unit in range(2)])
    wheel = make_wheel(tmp_path / "fat", "demo", {"demo/lib/libx.so": library})
    first = split_wheel(wheel, tmp_path / "one", ORDER, SourceDate())
    paths = [Path(first.host), *(Path(device.path) for device in first.devices)]
    assert mended(paths, tmp_path / "two").mended == ()
    for path in paths:
        assert members(tmp_path / "two" / path.name) == members(path)
