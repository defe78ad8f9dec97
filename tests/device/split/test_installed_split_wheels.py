"""Tests of `rocwheel.device.split.split_wheel`."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import shutil
import zipfile
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocwheel.binary.code_objects import parse_target_id
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.device.extract import extract_code
from rocwheel.device.split.join_wheels import join_wheels
from rocwheel.device.split.split_wheel import split_wheel
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.wheel_metadata import WheelSplitOrder
from rocwheel.index.write_index import write_index
from rocwheel.targets.declaration import DECLARATION_NAME, encode_declaration
from rocwheel.wheels.sdist import SourceDate
from tests.reference.conftest import new_environment
from tests.support.bills import bill_of, pedigree, record_digest, with_bill
from tests.support.damage import damaged
from tests.support.example_counts import examples
from tests.support.fat_libraries import build_fat_library, code_of, make_bundle
from tests.support.kpack_reader import ARCHIVE_NOT_FOUND, load_unit, units_of
from tests.support.loopback import served
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rocwheel.device.split.split_wheel import WheelSplit
    from tests.sdk.installed import Installed


pytestmark = pytest.mark.slow

ORDER = WheelSplitOrder(choice=SplitChoice())
DATE = SourceDate()
KERNELS = b"\x7fELFnot really"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    return build_fat_library(folder / "libfat.so", [make_bundle(0, "gfx906 gfx90a:xnack+ gfx90a:xnack-")])


@pytest.fixture
def wheel(tmp_path: Path, library: Path) -> Path:
    return make_wheel(tmp_path / "in", "my-torch", files_of(library), requires=("numpy",))


def files_of(library: Path) -> dict[str, Path | bytes]:
    return {
        "torch/__init__.py": b"import os\n",
        "torch/lib/libfat.so": library,
        "torch/other, lib/libfat.so": library,
        "torch/lib/aotriton.images/amd-gfx11xx/flash/a.aks2": b"image",
        "torch/lib/rocblas/library/Kernels_gfx906.hsaco": b"kernels",
    }


def install(folder: Path, *wheels: str | Path) -> Path:
    for path in wheels:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    return folder


def device_path(report: WheelSplit, target: str) -> str:
    return next(device.path for device in report.devices if device.target == target)


def test_a_gpu_finds_its_code_with_only_its_own_device_wheel(wheel: Path, tmp_path: Path) -> None:
    report = split_wheel(wheel, tmp_path / "out", ORDER, DATE)
    site = install(tmp_path / "site", report.host, device_path(report, "gfx90a"))
    for name in ("lib/libfat.so", "other, lib/libfat.so"):
        path = site / "torch" / name
        [unit] = units_of(path)
        for setting in ("xnack+", "xnack-"):
            asked = [f"gfx90a:{setting}"]
            assert [load_unit(path, unit, asked, old=old) for old in (True, False)] == [code_of(0, asked[0])] * 2
        assert load_unit(path, unit, ["gfx906"], old=False) == ARCHIVE_NOT_FOUND


def test_each_file_is_in_exactly_one_wheel(wheel: Path, tmp_path: Path) -> None:
    report = split_wheel(wheel, tmp_path / "out", ORDER, DATE)
    assert [device.target for device in report.devices] == ["gfx906", "gfx90a", "gfx11"]
    assert {
        Path(device.path).name: sorted(name for name in members(Path(device.path)) if name.startswith("torch"))
        for device in report.devices[1:]
    } == {
        "my_torch_device_gfx90a-1.0-py3-none-linux_x86_64.whl": [
            "torch/.device-gfx90a",
            *sorted(name for name in members(Path(device_path(report, "gfx90a"))) if ".kpack/" in name),
        ],
        "my_torch_device_gfx11-1.0-py3-none-linux_x86_64.whl": [
            "torch/.device-gfx11",
            "torch/lib/aotriton.images/amd-gfx11xx/flash/a.aks2",
        ],
    }
    assert sorted(name for name in members(Path(report.host)) if name.startswith("torch")) == [
        "torch/__init__.py",
        "torch/lib/libfat.so",
        "torch/other, lib/libfat.so",
    ]
    assert report.host == str(tmp_path / "out" / wheel.name)


def test_code_for_a_strict_target_goes_into_the_wheel_of_its_base_target(tmp_path: Path) -> None:
    library = build_fat_library(tmp_path / "libfat.so", [make_bundle(0, "gfx1250 gfx1250-strict")])
    kernels = {f"torch/lib/rocblas/library/Kernels_{name}.hsaco": b"kernels" for name in ("gfx1250", "gfx1250-strict")}
    wheel = make_wheel(tmp_path / "in", "my-torch", {"torch/lib/libfat.so": library, **kernels})
    report = split_wheel(wheel, tmp_path / "out", ORDER, DATE)
    [device] = report.devices
    assert (device.target, device.archives, device.files) == ("gfx1250", 2, 2)
    assert sorted(name for name in members(Path(device.path)) if name.startswith("torch")) == [
        "torch/.device-gfx1250",
        "torch/.kpack/libfat.so_gfx1250-strict.kpack",
        "torch/.kpack/libfat.so_gfx1250.kpack",
        "torch/lib/rocblas/library/Kernels_gfx1250-strict.hsaco",
        "torch/lib/rocblas/library/Kernels_gfx1250.hsaco",
    ]
    metadata = members(Path(report.host))["my_torch-1.0.dist-info/METADATA"].decode()
    assert [line for line in metadata.splitlines() if "device-" in line] == [
        "Provides-Extra: device-gfx1250",
        "Provides-Extra: device-all",
        'Requires-Dist: my-torch-device-gfx1250 == 1.0; extra == "device-gfx1250"',
        'Requires-Dist: my-torch-device-gfx1250 == 1.0; extra == "device-all"',
    ]
    joined = join_wheels(Path(report.host), [Path(device.path)], tmp_path / "joined", DATE)
    assert joined.targets == ("gfx1250", "gfx1250-strict")


def test_each_wheel_has_a_bill_of_materials_with_its_origin(library: Path, tmp_path: Path) -> None:
    files = {"torch/__init__.py": b"", **with_bill("my-torch")}
    wheel = make_wheel(tmp_path / "in", "my-torch", {"torch/lib/libfat.so": library, **files})
    report = split_wheel(wheel, tmp_path / "out", ORDER, DATE)
    host, device = Path(report.host), Path(device_path(report, "gfx906"))
    assert pedigree(host) == (
        (
            "rocwheel device split: moved the device code of torch/lib/libfat.so; "
            "to my-torch-device-gfx906, my-torch-device-gfx90a"
        ),
        record_digest(wheel),
    )
    assert pedigree(device) == ("rocwheel device split: received the device code for gfx906", record_digest(wheel))
    named = [bill_of(path)["metadata"]["component"]["purl"] for path in (host, device)]
    assert named == ["pkg:pypi/my-torch@1.0", "pkg:pypi/my-torch-device-gfx906@1.0"]
    joined = Path(join_wheels(host, [device], tmp_path / "joined", DATE).path)
    assert pedigree(joined) == (
        "rocwheel device join: restored the device code of torch/lib/libfat.so", record_digest(host),
    )  # fmt: skip


def test_two_files_with_the_same_name_have_separate_archives(wheel: Path, tmp_path: Path) -> None:
    report = split_wheel(wheel, tmp_path / "out", ORDER, DATE)
    archives = [name for name in members(Path(device_path(report, "gfx906"))) if name.endswith(".kpack")]
    assert len(set(archives)) == 2


def test_record_lists_every_file_with_its_hash_and_size(wheel: Path, tmp_path: Path) -> None:
    report = split_wheel(wheel, tmp_path / "out", ORDER, DATE)
    for path in (report.host, *(device.path for device in report.devices)):
        files = members(Path(path))
        [record] = [name for name in files if name.endswith(".dist-info/RECORD")]
        rows = list(csv.reader(io.StringIO(files[record].decode())))
        digests = {name: base64.urlsafe_b64encode(hashlib.sha256(data).digest()) for name, data in files.items()}
        assert {(row[0], row[1], row[2]) for row in rows} == {
            (name, f"sha256={digests[name].rstrip(b'=').decode()}", str(len(data)))
            for name, data in files.items()
            if name != record
        } | {(record, "", "")}


def test_licenses_are_copied_to_the_device_wheels(wheel: Path, tmp_path: Path) -> None:
    report = split_wheel(wheel, tmp_path / "out", ORDER, DATE)
    files = members(Path(device_path(report, "gfx906")))
    info = "my_torch_device_gfx906-1.0.dist-info"
    assert files[f"{info}/licenses/LICENSE"] == b"MIT\n"
    assert b"License-Expression: MIT\nLicense-File: LICENSE\n" in files[f"{info}/METADATA"]


def test_the_output_does_not_depend_on_the_number_of_workers(wheel: Path, tmp_path: Path) -> None:
    outputs: list[dict[str, bytes]] = []
    for jobs in (1, 2, 1):
        output = tmp_path / str(len(outputs))
        split_wheel(wheel, output, msgspec.structs.replace(ORDER, jobs=jobs), DATE)
        outputs.append({path.name: path.read_bytes() for path in output.iterdir()})
    assert outputs[0] == outputs[1] == outputs[2]
    assert len(outputs[0]) == 4


def test_targets_that_are_not_kept_are_omitted(wheel: Path, tmp_path: Path) -> None:
    choice = SplitChoice(keep=(parse_target_id("gfx90a"),))
    report = split_wheel(wheel, tmp_path / "out", msgspec.structs.replace(ORDER, choice=choice), DATE)
    assert [device.target for device in report.devices] == ["gfx90a"]
    assert "torch/lib/rocblas/library/Kernels_gfx906.hsaco" in report.left_out
    assert not any("gfx906" in name for name in members(Path(report.host)))


def test_names_and_requirements_can_be_chosen(wheel: Path, tmp_path: Path) -> None:
    order = msgspec.structs.replace(
        ORDER, device_prefix="amd-torch-device", device_requires=("rocm-sdk-device-@GFXARCH@ == 7.1",)
    )
    report = split_wheel(wheel, tmp_path / "out", order, DATE)
    path = device_path(report, "gfx906")
    assert Path(path).name == "amd_torch_device_gfx906-1.0-py3-none-linux_x86_64.whl"
    metadata = members(Path(path))["amd_torch_device_gfx906-1.0.dist-info/METADATA"].decode()
    assert "Name: amd-torch-device-gfx906\n" in metadata
    assert "Requires-Dist: my-torch==1.0\nRequires-Dist: rocm-sdk-device-gfx906==7.1\n" in metadata


def test_an_invalid_distribution_name_is_refused(wheel: Path, tmp_path: Path) -> None:
    order = msgspec.structs.replace(ORDER, device_prefix="bad name!", dry_run=True)
    with pytest.raises(
        InputError, match=r"--device-name: is 'bad name!', but a distribution name can't begin with this text"
    ):
        split_wheel(wheel, tmp_path / "out", order, DATE)


def test_each_wheel_declares_its_own_targets(tmp_path: Path, library: Path) -> None:
    targets = [parse_target_id(text) for text in ("gfx906", "gfx90a:xnack+", "gfx90a:xnack-")]
    declaration = {f"my_torch-1.0.dist-info/{DECLARATION_NAME}": encode_declaration(targets)}
    wheel = make_wheel(tmp_path, "my-torch", {"torch/libfat.so": library, **declaration})
    report = split_wheel(wheel, tmp_path / "out", ORDER, DATE)
    declared = {
        Path(path).name.partition("-")[0]: msgspec.json.decode(text)["rocm_targets"]
        for path in (report.host, *(device.path for device in report.devices))
        for name, text in members(Path(path)).items()
        if name.endswith(DECLARATION_NAME)
    }
    assert declared == {"my_torch": [], "my_torch_device_gfx906": ["gfx906"], "my_torch_device_gfx90a": ["gfx90a"]}


def test_code_outside_the_overlay_root_is_kept_and_listed(tmp_path: Path, library: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"torch/libfat.so": library, "more/libfat.so": library})
    report = split_wheel(wheel, tmp_path / "out", msgspec.structs.replace(ORDER, overlay_root="torch"), DATE)
    assert [(file.path, file.reason) for file in report.staying] == [("more/libfat.so", "outside the overlay root")]
    assert members(Path(report.host))["more/libfat.so"] == library.read_bytes()


def test_kernel_files_that_match_no_rule_are_kept_and_listed(tmp_path: Path, library: Path) -> None:
    unknown = {"torch/new/table.dat": b"table", "torch/new/kernels_gfx906.hsaco": b"kernels"}
    wheel = make_wheel(tmp_path, "demo", {"torch/libfat.so": library, **unknown})
    report = split_wheel(wheel, tmp_path / "out", ORDER, DATE)
    reason = "a kernel file that no rule covers"
    assert [(file.path, file.reason) for file in report.staying] == [(name, reason) for name in sorted(unknown)]
    assert members(Path(report.host)).items() >= unknown.items()


def refused(tmp_path: Path, files: Mapping[str, Path | bytes], root: str = "") -> str:
    wheel = make_wheel(tmp_path, "demo", files)
    with pytest.raises(RocwheelError) as raised:
        split_wheel(wheel, tmp_path / "out", msgspec.structs.replace(ORDER, overlay_root=root), DATE)
    assert not (tmp_path / "out").exists()
    return str(raised.value).replace(f"{wheel}", "WHEEL")


def test_an_unsplittable_wheel_is_refused_and_nothing_is_written(tmp_path: Path, library: Path) -> None:
    kinds = "expected a wheel with a fat binary or kernel files"
    assert refused(tmp_path, {"demo/x.py": b""}) == f"WHEEL: no device code to split off; {kinds}"
    assert refused(tmp_path, {"demo/x.py": b""}, "demo") == f"WHEEL: no device code to split off below demo; {kinds}"
    root = "WHEEL: has no folder other; expected an overlay root in the wheel"
    assert refused(tmp_path, {"demo/libfat.so": library}, "other") == root
    assert refused(tmp_path, {"a/libfat.so": library, "b/libfat.so": library}).startswith(
        "WHEEL: has device code in a, b; expected one folder. Specify the folder that contains the package: "
        "--overlay-root"
    )
    in_the_way = refused(tmp_path, {"demo/libfat.so": library, "demo/.kpack": b"x"}, "demo")
    assert in_the_way.startswith("WHEEL: 1 problem\n  .kpack: is a file, but the split puts archives below it; ")
    damaged = library.read_bytes().replace(b"__CLANG_OFFLOAD_BUNDLE__", b"__CLANG_OFFLOAD_BUNDL3__")
    assert refused(tmp_path, {"demo/libfat.so": damaged}, "demo").startswith("WHEEL!demo/libfat.so: ")


def test_a_wheel_with_code_at_the_top_level_is_refused_with_the_reason(tmp_path: Path, library: Path) -> None:
    assert refused(tmp_path, {"libfat.so": library, "demo/x.py": b""}) == (
        "WHEEL: can't be split: its device code is at the top level, which all packages share after "
        "installation; expected device code below one folder. "
        "Build the wheel with the code in its own folder, so that device wheels can add to that folder."
    )


def test_a_wheel_is_not_overwritten_by_its_host_wheel(wheel: Path) -> None:
    before = wheel.read_bytes()
    with pytest.raises(RocwheelError, match="would be overwritten by its host wheel"):
        split_wheel(wheel, wheel.parent, ORDER, DATE)
    assert (wheel.read_bytes(), list(wheel.parent.iterdir())) == (before, [wheel])


def test_a_dry_run_writes_nothing(wheel: Path, tmp_path: Path) -> None:
    report = split_wheel(wheel, tmp_path / "out", msgspec.structs.replace(ORDER, dry_run=True), DATE)
    assert [device.target for device in report.devices] == ["gfx906", "gfx90a", "gfx11"]
    assert not (tmp_path / "out").exists()


MANY = settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
CODE = sorted(code_of(unit, "gfx906") for unit in range(2))
HOST, DEVICE = "demo-1.0-py3-none-linux_x86_64.whl", "demo_device_gfx906-1.0-py3-none-linux_x86_64.whl"


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a fat wheel in ``fat``, and its host wheel and device wheel in ``split``."""
    folder = tmp_path_factory.mktemp("damage")
    library = build_fat_library(folder / "libx.so", [make_bundle(unit, "gfx906") for unit in range(2)])
    wheel = make_wheel(folder / "fat", "demo", {"demo/libx.so": library})
    split_wheel(wheel, folder / "split", ORDER, SourceDate())
    return folder


def emptied(parts: Path) -> Path:
    work = parts / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    return work


def code_in(wheels: list[Path], work: Path) -> list[bytes]:
    return sorted(Path(found.path).read_bytes() for found in extract_code(wheels, work / "code", ()))


@MANY
@given(st.data())
def test_a_damaged_wheel_is_split_or_refused(parts: Path, data: st.DataObject) -> None:
    work = emptied(parts)
    wheel = work / HOST
    wheel.write_bytes(data.draw(damaged([(parts / "fat" / HOST).read_bytes()])))
    try:
        split_wheel(wheel, work / "made", ORDER, SourceDate())
    except RocwheelError:
        assert list(work.iterdir()) == [wheel]
        return
    assert code_in(sorted((work / "made").iterdir()), work) == CODE


@MANY
@given(st.data(), st.sampled_from([HOST, DEVICE]))
def test_damaged_host_and_device_wheels_are_joined_or_refused(parts: Path, data: st.DataObject, name: str) -> None:
    work = emptied(parts)
    for path in (parts / "split").iterdir():
        shutil.copy(path, work)
    (work / name).write_bytes(data.draw(damaged([(parts / "split" / name).read_bytes()])))
    try:
        join_wheels(work / HOST, [work / DEVICE], work / "made", SourceDate())
    except RocwheelError:
        assert sorted(path.name for path in work.iterdir()) == sorted([HOST, DEVICE])
        return
    assert code_in([work / "made" / HOST], work) == CODE


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


def install_from(environment: Installed, index: str, *requirements: str) -> None:
    environment.installer("install", "--index-url", index, *requirements)


def code_found(environment: Installed, target: str) -> bytes | str:
    path = environment.site / "torch/lib/libfat.so"
    [unit] = units_of(path)
    return load_unit(path, unit, [target], old=False)


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_the_extra_of_a_target_installs_only_its_code(index: str, tmp_path: Path, tool: str) -> None:
    environment = make(tmp_path, tool)
    install_from(environment, index, "my-torch[device-gfx1100]")
    assert environment.dists() == ["my_torch", "my_torch_device_gfx11", "my_torch_device_gfx1100"]
    assert code_found(environment, "gfx1100") == code_of(0, "gfx1100")
    assert code_found(environment, "gfx906") == ARCHIVE_NOT_FOUND
    install_from(environment, index, "my-torch-device-gfx906")
    assert code_found(environment, "gfx906") == code_of(0, "gfx906")


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_wheels_can_be_removed_in_any_order_without_leftovers(index: str, tmp_path: Path, tool: str) -> None:
    environment = make(tmp_path, tool)
    before = environment.files()
    for order in ORDERS[:: 5 if tool == "uv" else 11]:
        install_from(environment, index, "my-torch[device-all]")
        assert len(environment.dists()) == 4
        for name in order:
            environment.uninstall(name)
            if "my_torch" in environment.dists():
                for target in ("gfx906", "gfx1100"):
                    is_there = f"my_torch_device_{target}" in environment.dists()
                    assert code_found(environment, target) == (code_of(0, target) if is_there else ARCHIVE_NOT_FOUND)
        assert environment.files() == before, order


def test_pip_and_uv_can_work_on_the_same_environment(index: str, tmp_path: Path) -> None:
    environment = make(tmp_path, "uv")
    before = environment.files()
    install_from(environment, index, "my-torch[device-all]")
    pip = msgspec.structs.replace(environment, tool="pip")
    pip.uninstall("my-torch-device-gfx906", "my-torch")
    environment.uninstall("my-torch-device-gfx11")
    pip.uninstall("my-torch-device-gfx1100")
    assert environment.files() == before
