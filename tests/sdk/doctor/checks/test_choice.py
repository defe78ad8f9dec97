"""``rocm-sdk doctor`` compares the choice of GPU families with what is installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.sdk.installed import FROM_INDEX

pytestmark = pytest.mark.slow

Make = Callable[..., Any]


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


def test_a_choice_that_the_release_lacks_is_reported(environment: Any, diagnose: Make) -> None:
    text = (
        "ROCM_SDK_TARGET_FAMILY=nope: ROCm 7.2.0 has no packages for nope on linux. Available: gfx906, gfx1030. "
        "Choose one of these, or unset the variable to have the GPU detected."
    )
    finding = ["error", text, "unset ROCM_SDK_TARGET_FAMILY"]
    assert diagnose(environment, 90006, ROCM_SDK_TARGET_FAMILY="nope") == [finding]


def test_a_choice_that_is_not_installed_is_reported(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006, ROCM_SDK_TARGET_FAMILY="gfx906") == []
    assert diagnose(environment, 90006, ROCM_SDK_TARGET_FAMILY="gfx906,gfx1030") == [
        [
            "error",
            (
                "gfx906, gfx1030 chosen by ROCM_SDK_TARGET_FAMILY=gfx906,gfx1030, but installed in "
                f"{environment.site} is device code for gfx906"
            ),
            f'pip install --no-cache-dir --force-reinstall "rocm[device]==7.2.0" {FROM_INDEX}',
        ]
    ]


def test_a_choice_matters_to_those_alone_who_have_libraries(make_set: Make, make_environment: Make) -> None:
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
            "gfx103X-dgpu. Choose one of these, or unset the variable to have the GPU detected.",
            "unset ROCM_SDK_TARGET_FAMILY",
            id="of no family",
        ),
        pytest.param(
            "gfx1031",
            "gfx103X-dgpu chosen by ROCM_SDK_TARGET_FAMILY=gfx1031, but installed in {site} is device code for "
            "gfx94X-dcgpu",
            f'pip install --no-cache-dir --force-reinstall "rocm[libraries]==7.2.0" {FROM_INDEX}',
            id="of a family that is not installed",
        ),
    ],
)
def test_a_wrong_choice_among_libraries_by_family_is_a_finding_like_others(
    make_set: Make, make_environment: Make, choice: str, text: str, remedy: str
) -> None:
    families = (("gfx94X-dcgpu", ("gfx942",)), ("gfx103X-dgpu", ("gfx1030", "gfx1031")))
    environment = make_environment(make_set(families=families))
    environment.install("rocm[libraries]", ROCM_SDK_TARGET_FAMILY="gfx94X-dcgpu")
    done = environment.run("rocm-sdk", "doctor", "--json", check=False, ROCM_SDK_TARGET_FAMILY=choice)
    finding = {"level": "error", "text": text.format(site=environment.site), "remedy": remedy}
    assert finding in json.loads(done.stdout)["findings"]
    assert (done.returncode, done.stderr) == (1, "")
