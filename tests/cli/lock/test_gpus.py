"""Tests of the GPUs that requirements are locked for."""

from __future__ import annotations

import re

import pytest

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.index.lock import check_locked, parse_requirements, targets_to_lock


@pytest.mark.parametrize(
    ("text", "targets", "environ", "expected"),
    [
        ("rocm[libraries,device-gfx942]", None, {}, ("gfx942",)),
        ("rocm[Device_GFX942,device-gfx1100]", None, {}, ("gfx1100", "gfx942")),
        ("rocm[device]", "MI300X", {}, ("gfx942",)),
        ("rocm[device-gfx942]", "gfx90a:xnack+", {}, ("gfx90a",)),
        ("rocm[device]", None, {"ROCM_SDK_TARGET_FAMILY": "gfx906; gfx942"}, ("gfx906", "gfx942")),
        ("rocm[device-gfx942]", None, {"ROCM_SDK_TARGET_FAMILY": "gfx906"}, ("gfx942",)),
        ("rocm-sdk-device-gfx906", None, {"ROCM_SDK_TARGET_FAMILY": "gfx942"}, ("gfx906",)),
        ("ROCm_SDK.device-gfx906", "gfx942", {}, ("gfx942",)),
        ("rocm-sdk-libraries-gfx94x-dcgpu", None, {}, ()),
        ("rocm[device-all]", None, {}, ()),
        ("rocm", None, {}, ()),
    ],
)
def test_what_names_the_gpus(
    text: str, targets: str | None, environ: dict[str, str], expected: tuple[str, ...]
) -> None:
    found = targets_to_lock(parse_requirements([text]), targets, environ)
    assert tuple(sorted(found)) == expected


def test_what_the_machine_would_decide_is_refused() -> None:
    with pytest.raises(InputError, match="is decided by the GPUs of a machine") as caught:
        targets_to_lock(parse_requirements(["rocm[device]"]), None, {})
    assert str(caught.value).endswith("Say for which GPUs: --targets gfx942.")


CORE = ("rocm", "rocm-sdk-core")


@pytest.mark.parametrize(
    ("projects", "text", "targets"),
    [
        ((*CORE, "rocm-sdk-device-gfx942"), "rocm[device-gfx942]", ("gfx942",)),
        ((*CORE, "rocm-sdk-libraries-gfx94x-dcgpu"), "rocm[libraries]", ("gfx942",)),
        ((*CORE, "torch-device-gfx12-0", "torch-device-gfx1201"), "torch[device-gfx1201]", ("gfx1201",)),
        ((*CORE, "rocm-sdk-device-gfx9999"), "rocm[device-gfx9999]", ("gfx9999",)),
        ((*CORE, "rocm-sdk-device-gfx906", "rocm-sdk-device-gfx942"), "rocm[device-all]", ()),
        ((*CORE, "rocm-sdk-device-gfx906", "rocm-sdk-device-gfx942"), "rocm[Device_All,device-gfx942]", ("gfx942",)),
        (("rocm-sdk-libraries-gfx94x-dcgpu",), "ROCm_SDK_libraries-gfx94X-dcgpu", ()),
        (CORE, "rocm", ()),
    ],
)
def test_packages_for_the_named_gpus_are_well(projects: tuple[str, ...], text: str, targets: tuple[str, ...]) -> None:
    check_locked(projects, parse_requirements([text]), targets, "pylock.toml", is_given=False)


def test_the_plain_wheel_of_variants_is_said_to_require_every_gpu() -> None:
    projects = ("rocm-sdk-device", "rocm-sdk-device-gfx1100", "rocm-sdk-device-gfx942")
    message = (
        "rocm-sdk-device-gfx942: is required by the plain wheel of rocm-sdk-device, as lock files have no variants. "
        "Lock rocm-sdk-device-gfx... for the GPU in its place, or an extra such as rocm[device-gfx942]."
    )
    with pytest.raises(InputError, match=re.escape(message)):
        check_locked(projects, parse_requirements(["rocm-sdk-device"]), ("gfx1100",), "pylock.toml", is_given=False)


@pytest.mark.parametrize("targets", [(), ("gfx942",)])
def test_a_package_that_this_machine_chose_is_an_error(targets: tuple[str, ...]) -> None:
    message = (
        "rocm-sdk-libraries-gfx103x-dgpu: is for gfx103x-dgpu: this machine's GPUs chose it, or another package "
        "requires it"
    )
    projects = (*CORE, "rocm-sdk-libraries-gfx103x-dgpu")
    with pytest.raises(InputError, match=re.escape(message)):
        check_locked(projects, parse_requirements(["rocm"]), targets, "pylock.toml", is_given=bool(targets))


def test_every_device_package_asks_for_none_that_the_machine_chooses() -> None:
    projects = (*CORE, "rocm-sdk-device-gfx906", "rocm-sdk-libraries-gfx103x-dgpu")
    message = (
        "rocm-sdk-libraries-gfx103x-dgpu: is for gfx103x-dgpu: this machine's GPUs chose it, or another package "
        "requires it"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        check_locked(projects, parse_requirements(["rocm[device-all]"]), (), "pylock.toml", is_given=False)


def test_an_extra_that_resolvers_pass_over_is_an_error() -> None:
    with pytest.raises(InputError, match=r"pylock.toml: has no package for gfx1100, which an extra asks for"):
        check_locked(CORE, parse_requirements(["rocm[device-gfx1100]"]), ("gfx1100",), "pylock.toml", is_given=False)


def test_texts_that_are_no_requirements_are_named_together() -> None:
    with pytest.raises(ProblemsError) as caught:
        parse_requirements(["rocm[", "rocm", "-r x"])
    assert [str(problem.source) for problem in caught.value.problems] == ["rocm[", "-r x"]  # type: ignore[attr-defined]


def test_brackets_of_a_requirement_are_an_error_that_names_it() -> None:
    with pytest.raises(InputError, match=r"is not a requirement \(more than 32 brackets within one another\)"):
        parse_requirements(["rocm; " + "(" * 5000])


def test_a_text_that_is_no_requirement_is_named_without_its_password() -> None:
    with pytest.raises(InputError, match=re.escape("x @@ https://host/x.whl: is not a requirement")) as caught:
        parse_requirements(["x @@ https://me:secret@host/x.whl"])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "rocm[libraries,device-gfx906]",
            "name gfx90a alone, and an extra asks for gfx906. Name gfx906 as well, or leave its extra out.",
        ),
        (
            "rocm-sdk-device-gfx906",
            "name gfx90a alone, and rocm-sdk-device-gfx906 is required. Name gfx906 as well, or leave the package out.",
        ),
        (
            "rocm[device-all]",
            (
                "name gfx90a alone, and device-all asks for others (gfx906). "
                "Leave --targets out, or ask for device-gfx90a in place of device-all."
            ),
        ),
    ],
)
def test_what_asks_for_another_gpu_than_the_named_ones_is_told(text: str, message: str) -> None:
    projects = (*CORE, "rocm-sdk-device-gfx906", "rocm-sdk-device-gfx90a")
    with pytest.raises(InputError) as caught:
        check_locked(projects, parse_requirements([text]), ("gfx90a",), "pylock.toml", is_given=True)
    assert str(caught.value) == f"--targets: {message}"
