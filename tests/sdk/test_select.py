"""Deciding which families an environment gets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    Load = Callable[..., Callable[[str], ModuleType]]

pytestmark = pytest.mark.slow

FAMILIES = (("gfx103X-dgpu", ("gfx1030", "gfx1031")), ("gfx94X-dcgpu", ("gfx942",)))


def decide(load: Load, environ: dict[str, str], platform: str = "linux", **options: Any) -> Any:
    modules = load(**options)
    system = modules("rocm_sdk._system").System(Path("/absent"), environ, platform)
    return modules("rocm_sdk._select").select(system)


def extras(load: Load, environ: dict[str, str], platform: str = "linux", **options: Any) -> Any:
    selection = decide(load, environ, platform, **options)
    from rocm_sdk._select import choose_extras  # type: ignore[import-not-found]  # noqa: PLC0415

    return choose_extras(selection, platform)


def gpus(*targets: str) -> dict[str, str]:
    return {"ROCM_BOOTSTRAP_FORCE_GFX_ARCH": ",".join(targets)}


def choice(value: str) -> dict[str, str]:
    return {"ROCM_SDK_TARGET_FAMILY": value}


@pytest.mark.parametrize("value", ["gfx1030,gfx906", "gfx1030; gfx906", " gfx1030 gfx906 "])
def test_a_choice_may_name_several_families(load_sdk: Load, value: str) -> None:
    assert decide(load_sdk, choice(value)).families == ("gfx1030", "gfx906")


@pytest.mark.parametrize("value", [",", " ; ", ""])
def test_an_empty_choice_is_ignored(load_sdk: Load, value: str) -> None:
    assert decide(load_sdk, choice(value) | gpus("gfx1030"))[:2] == (("gfx1030",), "detection")


def test_the_doctor_lists_only_the_families_for_the_platform(load_sdk: Load) -> None:
    modules = load_sdk()
    system = modules("rocm_sdk._system").System(Path("/absent"), {}, "win32")
    [finding] = modules("rocm_sdk._doctor_device_code").check_device_code(
        system, [modules("rocm_sdk._gpus").Gpu(1, "gfx906")]
    )
    assert finding.text == "ROCm 7.2.0 has no packages for gfx906 (available: nothing for win32)"


def test_a_choice_takes_precedence_over_the_gpu_and_the_default(load_sdk: Load) -> None:
    selection = decide(load_sdk, choice("gfx906") | gpus("gfx1030"), default="gfx1030")
    assert selection[:2] == (("gfx906",), "environment")


SERVED: dict[str, Any] = {
    "devices": ("gfx11-generic", "gfx1030"),
    "served": (("gfx11-generic", ("gfx1103",)), ("gfx1030", ("gfx1031",))),
}


def test_a_gpu_without_its_own_package_gets_the_package_whose_code_it_runs(load_sdk: Load) -> None:
    selection = decide(load_sdk, gpus("gfx1103"), **SERVED)
    assert selection[:2] == (("gfx11-generic",), "detection")
    assert selection.explanation == (
        "gfx11-generic chosen for the GPUs found: gfx1103; "
        "gfx1103 doesn't have its own package, but runs the code for gfx11-generic"
    )


def test_the_replacement_for_a_choice_without_its_own_package_is_explained(load_sdk: Load) -> None:
    assert decide(load_sdk, choice("gfx1031"), **SERVED).explanation == (
        "gfx1030 chosen by ROCM_SDK_TARGET_FAMILY=gfx1031; "
        "gfx1031 doesn't have its own package, but runs the code for gfx1030"
    )


def test_a_gpu_with_a_package_needs_no_further_explanation(load_sdk: Load) -> None:
    assert decide(load_sdk, gpus("gfx1030"), **SERVED).explanation == "gfx1030 chosen for the GPUs found: gfx1030"


def test_choosing_a_target_selects_the_family_that_supports_it(load_sdk: Load) -> None:
    assert decide(load_sdk, choice("gfx1031"), families=FAMILIES).families == ("gfx103X-dgpu",)


def test_an_unavailable_choice_is_refused_with_the_available_families(load_sdk: Load) -> None:
    message = (
        "ROCM_SDK_TARGET_FAMILY=gfx906,gfx1100: ROCm 7.2.0 has no packages for gfx1100 on linux. "
        "Available: gfx906, gfx1030. Choose one of these families, or unset the variable to detect the GPU."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        decide(load_sdk, choice("gfx906,gfx1100"))


def test_a_choice_for_another_platform_selects_nothing_here(load_sdk: Load) -> None:
    # As when a lock for all platforms is made on one of them
    explanation = "this release has packages for gfx906 only on linux"
    assert decide(load_sdk, choice("gfx906"), "win32") == ((), "environment", explanation)


def test_a_choice_on_no_platform_is_refused_with_the_choices_of_other_platforms(load_sdk: Load) -> None:
    message = "has no packages for gfx1100 on win32. Available: nothing on win32; gfx906, gfx1030 on linux. Choose"
    with pytest.raises(ValueError, match=re.escape(message)):
        decide(load_sdk, choice("gfx906,gfx1100"), "win32")


def test_the_doctor_reports_a_choice_for_another_platform(load_sdk: Load) -> None:
    modules = load_sdk()
    system = modules("rocm_sdk._system").System(Path("/absent"), choice("gfx906"), "win32")
    [finding] = modules("rocm_sdk._doctor_device_code").check_choice(system)
    text = "this release has packages for gfx906 only on linux"
    assert finding == ("error", text, "unset ROCM_SDK_TARGET_FAMILY")


def test_different_gpus_select_all_their_families_in_node_order(load_sdk: Load) -> None:
    assert decide(load_sdk, gpus("gfx906", "gfx1030", "gfx906")).families == ("gfx906", "gfx1030")


def test_a_gpu_without_packages_does_not_hide_a_gpu_with_packages(load_sdk: Load) -> None:
    selection = decide(load_sdk, gpus("gfx1100", "gfx906"))
    explanation = "gfx906 chosen for the GPUs found: gfx906; this release has no packages for gfx1100"
    assert selection == (("gfx906",), "detection", explanation)


def test_the_default_applies_to_machines_without_a_gpu(load_sdk: Load) -> None:
    assert decide(load_sdk, {}, default="gfx1030")[:2] == (("gfx1030",), "default")


def test_the_default_does_not_apply_to_a_gpu_without_packages(load_sdk: Load) -> None:
    selection = decide(load_sdk, gpus("gfx1100"), default="gfx1030")
    assert selection == ((), "none", "this release has no packages for the GPUs found: gfx1100")


def test_nothing_is_selected_without_a_gpu_and_without_a_default(load_sdk: Load) -> None:
    assert decide(load_sdk, {}) == ((), "none", "no AMD GPU was found")


def test_a_failed_detection_selects_nothing_and_is_explained(load_sdk: Load) -> None:
    selection = decide(load_sdk, gpus("navi"))
    assert selection[:2] == ((), "none")
    assert selection.explanation.startswith("ROCM_BOOTSTRAP_FORCE_GFX_ARCH: 'navi' is not a GPU target")


def test_an_invalid_node_does_not_hide_a_gpu(load_sdk: Load, tmp_path: Path) -> None:
    nodes = tmp_path / "machine/sys/class/kfd/kfd/topology/nodes"
    for node, text in enumerate(("", "simd_count 416\ngfx_target_version 90006\n")):
        (nodes / str(node)).mkdir(parents=True)
        (nodes / str(node) / "properties").write_text(text)
    modules = load_sdk()
    system = modules("rocm_sdk._system").System(tmp_path / "machine", {}, "linux")
    assert modules("rocm_sdk._select").select(system) == (
        ("gfx906",),
        "detection",
        (
            "gfx906 chosen for the GPUs found: gfx906; /sys/class/kfd/kfd/topology/nodes/0/properties: is empty; "
            "expected properties that include 'simd_count' and a number"
        ),
    )


def test_a_selected_extra_requires_the_package_of_each_family(load_sdk: Load) -> None:
    chosen = extras(load_sdk, gpus("gfx906", "gfx1030"))
    assert chosen["device"] == [["rocm-sdk-device-gfx906==7.2.0", ""], ["rocm-sdk-device-gfx1030==7.2.0", ""]]


def test_a_selected_extra_says_what_to_do_if_nothing_is_selected(load_sdk: Load) -> None:
    requirement = (
        "rocm-sdk-core==7.2.0.dev0+no.amd.gpu.was.found.so.request.one.of.the.extras.device.gfx906.device.gfx1030"
    )
    assert extras(load_sdk, {}, version="7.2.0.dev0+abc")["device"] == [[requirement, ""]]


def test_a_platform_without_families_is_named(load_sdk: Load) -> None:
    chosen = extras(load_sdk, {}, platform="win32", default="gfx1030")
    assert chosen["device"] == [["rocm-sdk-core==7.2.0+this.release.has.no.device.packages.for.win32", ""]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(explanation=st.text())
def test_a_refusal_is_a_valid_requirement_whatever_the_reason(load_once: ModuleType, explanation: str) -> None:
    selection = load_once.Selection((), "none", explanation)
    [[requirement, _]] = load_once.choose_extras(selection, "linux")["device"]
    assert Requirement(requirement).name == "rocm-sdk-core"


@pytest.fixture
def load_once(load_sdk: Load) -> ModuleType:
    return load_sdk()("rocm_sdk._select")
