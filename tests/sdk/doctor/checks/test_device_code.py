"""``rocm-sdk doctor`` finds GPUs for which no code is installed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.sdk.installed import FROM_INDEX

pytestmark = pytest.mark.slow

INSTALL_GFX1030 = f'pip install "rocm[device-gfx1030]==7.2.0" {FROM_INDEX}'
Make = Callable[..., Any]


def test_nothing_is_wrong_when_every_gpu_has_its_package(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006) == []


def test_a_gpu_without_its_package_comes_with_the_command_that_installs_it(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006, 100300) == [
        [
            "error",
            "the package with the kernels for gfx1030 is not installed",
            f'pip install "rocm[device-gfx1030]==7.2.0" {FROM_INDEX}',
        ]
    ]


def test_a_gpu_that_the_release_does_not_serve_is_reported(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 110000) == [
        [
            "error",
            "ROCm 7.2.0, which has gfx906, gfx1030, has no packages for gfx1100",
            "pip index versions rocm lists other releases",
        ]
    ]


@pytest.mark.parametrize(
    ("versions", "level", "remedy"),
    [
        pytest.param((90006, 100306, 90006), "note", "export HIP_VISIBLE_DEVICES=0,2", id="beside others"),
        pytest.param((100306,), "warning", "pip index versions rocm lists other releases", id="alone"),
    ],
)
def test_an_integrated_gpu_without_packages_is_not_an_error(
    environment: Any, diagnose: Make, versions: tuple[int, ...], level: str, remedy: str
) -> None:
    assert diagnose(environment, *versions) == [
        [
            level,
            "ROCm 7.2.0, which has gfx906, gfx1030, has no packages for gfx1036, which is integrated",
            remedy,
        ]
    ]


def test_a_gpu_that_is_hidden_from_programs_needs_no_package(environment: Any, diagnose: Make) -> None:
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
def test_gpus_that_variables_hide_need_no_package(
    environment: Any, diagnose: Make, rocr: str, hip: str, lacking: list[str]
) -> None:
    variables = {"ROCR_VISIBLE_DEVICES": rocr, "HIP_VISIBLE_DEVICES": hip}
    findings = diagnose(environment, 90006, 110000, 100300, **variables)
    assert [re.findall("for (gfx[0-9]+)", text)[0] for _, text, _ in findings] == lacking


@pytest.mark.parametrize(("hip", "count"), [("", 0), ("1", 1)], ids=["alone", "after HIP's own variable"])
def test_the_variable_of_cuda_hides_gpus_too(environment: Any, diagnose: Make, hip: str, count: int) -> None:
    variables = {"CUDA_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": hip}
    assert len(diagnose(environment, 90006, 110000, **variables)) == count


def test_the_way_around_gpus_that_the_release_does_not_serve_leads_to_those_that_it_does(
    environment: Any, diagnose: Make
) -> None:
    remedies = [remedy for _, _, remedy in diagnose(environment, 110000, 90006, 120000)]
    assert remedies == ["export HIP_VISIBLE_DEVICES=1"] * 2
    others = diagnose(environment, 110000, 90006, 120000, ROCR_VISIBLE_DEVICES="1,2")
    assert [remedy for _, _, remedy in others] == ["export HIP_VISIBLE_DEVICES=0"]
    assert {remedy for _, _, remedy in diagnose(environment, 110000, 120000)} == {
        "pip index versions rocm lists other releases"
    }


def test_no_number_of_a_gpu_is_named_when_another_node_cannot_be_understood(environment: Any, diagnose: Make) -> None:
    remedies = {text: remedy for _, text, remedy in diagnose(environment, 90006, 1, 110000)}
    assert remedies["ROCm 7.2.0, which has gfx906, gfx1030, has no packages for gfx1100"] == (
        "Set HIP_VISIBLE_DEVICES to the numbers of gfx906 among the GPUs that rocminfo lists"
    )


def test_an_integrated_gpu_that_passes_for_another_hides_no_missing_package(environment: Any, diagnose: Make) -> None:
    findings = diagnose(environment, 100301, 100306, HSA_OVERRIDE_GFX_VERSION="10.3.0")
    assert ["error", "the package with the kernels for gfx1030 is not installed", INSTALL_GFX1030] in findings


def test_two_gpus_of_one_kind_are_reported_once(environment: Any, diagnose: Make) -> None:
    assert len(diagnose(environment, 100300, 100300)) == 1
