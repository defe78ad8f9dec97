"""The doctor tells which GPUs the packages, and wheels of others, have no code for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rocwheel.device.split.split_wheel import split_wheel
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.wheel_metadata import WheelSplitOrder
from rocwheel.sdk.rocm_sdk._gpus import GENERIC_TARGETS
from rocwheel.targets.catalog import load_catalog
from rocwheel.wheels.sdist import SourceDate
from tests.sdk.installed import FROM_INDEX
from tests.support.fat_libraries import build_fat_library, make_bundle
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow

INSTALL_GFX1030 = f'pip install "rocm[device-gfx1030]==7.2.0" {FROM_INDEX}'
Make = Callable[..., Any]


def test_nothing_is_wrong_when_every_gpu_has_its_package(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006) == []


def test_a_gpu_without_its_package_is_reported_with_the_install_command(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006, 100300) == [
        [
            "error",
            "the package with the kernels for gfx1030 is not installed",
            f'pip install "rocm[device-gfx1030]==7.2.0" {FROM_INDEX}',
        ]
    ]


def test_a_gpu_unsupported_by_the_release_is_reported(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 110000) == [
        [
            "error",
            "ROCm 7.2.0 has no packages for gfx1100 (available: gfx906, gfx1030)",
            "To list other releases: pip index versions rocm",
        ]
    ]


@pytest.mark.parametrize(
    ("versions", "level", "remedy"),
    [
        pytest.param((90006, 100306, 90006), "note", "export HIP_VISIBLE_DEVICES=0,2", id="beside others"),
        pytest.param((100306,), "warning", "To list other releases: pip index versions rocm", id="alone"),
    ],
)
def test_an_integrated_gpu_without_packages_is_not_an_error(
    environment: Any, diagnose: Make, versions: tuple[int, ...], level: str, remedy: str
) -> None:
    assert diagnose(environment, *versions) == [
        [
            level,
            "ROCm 7.2.0 has no packages for gfx1036, which is integrated (available: gfx906, gfx1030)",
            remedy,
        ]
    ]


def test_a_gpu_hidden_from_programs_needs_no_package(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006, 110000, HIP_VISIBLE_DEVICES="0") == []
    assert len(diagnose(environment, 90006, 110000, HIP_VISIBLE_DEVICES="0,1")) == 1
    assert len(diagnose(environment, 90006, 110000, HIP_VISIBLE_DEVICES="GPU-1234")) == 1


@pytest.mark.parametrize(
    ("rocr", "hip", "lacking"),
    [
        pytest.param("1", "", ["gfx1100"], id="ROCR alone"),
        pytest.param("1,2", "1", ["gfx1030"], id="HIP counts what ROCR leaves"),
        pytest.param("", "-1", [], id="none"),
        pytest.param("", "0,-1,1", [], id="none after one that there is not"),
        pytest.param("", "0,7,1", [], id="none after a number that is too high"),
        pytest.param("1", "1", [], id="a number that ROCR took away"),
        pytest.param("0", "GPU-1234", [], id="UUIDs of what ROCR leaves"),
        pytest.param("", "", ["gfx1100", "gfx1030"], id="all"),
    ],
)
def test_gpus_hidden_by_variables_need_no_package(
    environment: Any, diagnose: Make, rocr: str, hip: str, lacking: list[str]
) -> None:
    variables = {"ROCR_VISIBLE_DEVICES": rocr, "HIP_VISIBLE_DEVICES": hip}
    findings = diagnose(environment, 90006, 110000, 100300, **variables)
    assert [re.findall("for (gfx[0-9]+)", text)[0] for _, text, _ in findings] == lacking


@pytest.mark.parametrize(("hip", "count"), [("", 0), ("1", 1)], ids=["alone", "after HIP's own variable"])
def test_the_cuda_variable_also_hides_gpus(environment: Any, diagnose: Make, hip: str, count: int) -> None:
    variables = {"CUDA_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": hip}
    assert len(diagnose(environment, 90006, 110000, **variables)) == count


def test_the_workaround_for_unsupported_gpus_selects_the_supported_gpus(environment: Any, diagnose: Make) -> None:
    remedies = [remedy for _, _, remedy in diagnose(environment, 110000, 90006, 120000)]
    assert remedies == ["export HIP_VISIBLE_DEVICES=1"] * 2
    others = diagnose(environment, 110000, 90006, 120000, ROCR_VISIBLE_DEVICES="1,2")
    assert [remedy for _, _, remedy in others] == ["export HIP_VISIBLE_DEVICES=0"]
    assert {remedy for _, _, remedy in diagnose(environment, 110000, 120000)} == {
        "To list other releases: pip index versions rocm"
    }


def test_no_gpu_number_is_suggested_if_another_node_is_invalid(environment: Any, diagnose: Make) -> None:
    remedies = {text: remedy for _, text, remedy in diagnose(environment, 90006, 1, 110000)}
    assert remedies["ROCm 7.2.0 has no packages for gfx1100 (available: gfx906, gfx1030)"] == (
        "Set HIP_VISIBLE_DEVICES to the numbers of gfx906 in the output of rocminfo"
    )


def test_an_integrated_gpu_with_an_override_does_not_hide_a_missing_package(environment: Any, diagnose: Make) -> None:
    findings = diagnose(environment, 100301, 100306, HSA_OVERRIDE_GFX_VERSION="10.3.0")
    assert ["error", "the package with the kernels for gfx1030 is not installed", INSTALL_GFX1030] in findings


def test_two_gpus_of_the_same_kind_are_reported_once(environment: Any, diagnose: Make) -> None:
    assert len(diagnose(environment, 100300, 100300)) == 1


def test_libraries_of_another_family_are_reported(make_set: Make, make_environment: Make, diagnose: Make) -> None:
    families = (("gfx94X-dcgpu", ("gfx942",)), ("gfx103X-dgpu", ("gfx1030", "gfx1031")))
    environment = make_environment(make_set(families=families))
    environment.install("rocm[libraries]", ROCM_SDK_TARGET_FAMILY="gfx94X-dcgpu")
    assert diagnose(environment, 90402) == []
    assert diagnose(environment, 100301) == [
        [
            "error",
            "the package with the libraries for gfx1031 is not installed",
            f'pip install "rocm[libraries-gfx103X-dgpu]==7.2.0" {FROM_INDEX}',
        ]
    ]


def test_a_choice_missing_from_the_release_is_reported(environment: Any, diagnose: Make) -> None:
    text = (
        "ROCM_SDK_TARGET_FAMILY=nope: ROCm 7.2.0 has no packages for nope on linux. Available: gfx906, gfx1030. "
        "Choose one of these families, or unset the variable to detect the GPU."
    )
    finding = ["error", text, "unset ROCM_SDK_TARGET_FAMILY"]
    assert diagnose(environment, 90006, ROCM_SDK_TARGET_FAMILY="nope") == [finding]


def test_a_choice_that_is_not_installed_is_reported(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006, ROCM_SDK_TARGET_FAMILY="gfx906") == []
    assert diagnose(environment, 90006, ROCM_SDK_TARGET_FAMILY="gfx906,gfx1030") == [
        [
            "error",
            (
                "gfx906, gfx1030 chosen by ROCM_SDK_TARGET_FAMILY=gfx906,gfx1030, but "
                f"{environment.site} has device code for gfx906"
            ),
            f'pip install --no-cache-dir --force-reinstall "rocm[device]==7.2.0" {FROM_INDEX}',
        ]
    ]


def test_a_choice_is_ignored_if_no_libraries_are_installed(make_set: Make, make_environment: Make) -> None:
    environment = make_environment(make_set())
    environment.install("rocm")
    done = environment.run("rocm-sdk", "doctor", ROCM_SDK_TARGET_FAMILY="gfx906", LD_LIBRARY_PATH="")
    assert "chosen by" not in done.stdout


@pytest.mark.parametrize(
    ("choice", "text", "remedy"),
    [
        pytest.param(
            "nope",
            "ROCM_SDK_TARGET_FAMILY=nope: ROCm 7.2.0 has no packages for nope on linux. Available: gfx94X-dcgpu, "
            "gfx103X-dgpu. Choose one of these families, or unset the variable to detect the GPU.",
            "unset ROCM_SDK_TARGET_FAMILY",
            id="of no family",
        ),
        pytest.param(
            "gfx1031",
            "gfx103X-dgpu chosen by ROCM_SDK_TARGET_FAMILY=gfx1031, but {site} has device code for gfx94X-dcgpu",
            f'pip install --no-cache-dir --force-reinstall "rocm[libraries]==7.2.0" {FROM_INDEX}',
            id="of a family that is not installed",
        ),
    ],
)
def test_an_invalid_choice_with_family_libraries_is_reported_as_a_finding(
    make_set: Make, make_environment: Make, choice: str, text: str, remedy: str
) -> None:
    families = (("gfx94X-dcgpu", ("gfx942",)), ("gfx103X-dgpu", ("gfx1030", "gfx1031")))
    environment = make_environment(make_set(families=families))
    environment.install("rocm[libraries]", ROCM_SDK_TARGET_FAMILY="gfx94X-dcgpu")
    done = environment.run("rocm-sdk", "doctor", "--json", check=False, ROCM_SDK_TARGET_FAMILY=choice)
    finding = {"level": "error", "text": text.format(site=environment.site), "remedy": remedy}
    assert finding in json.loads(done.stdout)["findings"]
    assert (done.returncode, done.stderr) == (1, "")


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
def test_findings_are_correct_in_any_order_of_installing_and_removing_device_wheels(
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


def test_generic_code_is_sufficient_and_gpus_without_code_are_named(
    environment: Any, diagnose: Make, wheels: Path
) -> None:
    add(environment, wheels, "my-torch", "my-torch-device-gfx906")

    def found() -> list[list[str]]:
        return [row for row in diagnose(environment, GFX906, GFX1100, 90010) if "my-torch" in row[1]]

    offered = "gfx906, gfx1030, gfx11-generic"
    none = ["warning", f"my-torch 1.0 has no device wheel for gfx90a, only for {offered}", ""]
    assert found() == [lacking("gfx1100", "gfx11-generic"), none]
    add(environment, wheels, "my-torch-device-gfx11-generic")
    assert found() == [none]


def test_a_device_wheel_with_a_missing_archive_or_another_version_is_reported(
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
    assert text == f"my-torch finds no device code for gfx906: {name} has version 0.9, but my-torch has version 1.0"


def test_the_copy_that_python_imports_counts_if_there_are_two(
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
    assert text == (
        "my-torch finds no device code for gfx906: my-torch-device-gfx906 has version 0.9, but my-torch has version 1.0"
    )


def test_generic_targets_match_the_catalog() -> None:
    assert {name: tuple(text.split()) for name, text in GENERIC_TARGETS.items()} == {
        generic.name: generic.members for generic in load_catalog().generics if generic.members
    }
