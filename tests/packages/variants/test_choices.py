"""Which packages the GPUs need: labels, targets and packages of variants."""

from __future__ import annotations

import pytest

from rocwheel.packages.variants.choices import make_choices
from rocwheel.packages.variants.gpu_package import GpuPackage, split_distribution


def package(word: str, *declared: str) -> GpuPackage:
    return GpuPackage("torch-device", word, "1", ("py3", "none", "any"), declared)


def choices(*packages: GpuPackage) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return targets and names of packages by label."""
    return {one.label: (one.targets, tuple(p.word for p in one.packages)) for one in make_choices(packages)}


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("rocm-sdk-device-gfx942", ("rocm-sdk-device", "gfx942")),
        ("rocm_sdk_device_gfx9_4_generic", ("rocm-sdk-device", "gfx9-4-generic")),
        ("rocm-sdk-libraries-gfx94X-dcgpu", ("rocm-sdk-libraries", "gfx94x-dcgpu")),
        ("torch-device-gfx12-0", ("torch-device", "gfx12-0")),
        ("rocm-sdk-core", None),
        ("rocm-sdk-device-gfx", None),
        ("thing-gfx942x", None),
        ("gfx942", None),
    ],
)
def test_a_package_is_known_by_the_gpu_that_ends_its_name(name: str, parts: tuple[str, str] | None) -> None:
    assert split_distribution(name) == parts


def test_each_target_is_a_variant() -> None:
    assert choices(package("gfx1100"), package("gfx90a", "gfx90a")) == {
        "gfx90a": (("gfx90a",), ("gfx90a",)),
        "gfx1100": (("gfx1100",), ("gfx1100",)),
    }


def test_a_family_is_one_variant_for_the_targets_that_it_has_code_for() -> None:
    assert choices(package("gfx94x-dcgpu", "gfx942"), package("gfx110x-all")) == {
        "gfx94x_dcgpu": (("gfx942",), ("gfx94x-dcgpu",)),
        "gfx110x_all": (("gfx1100", "gfx1101", "gfx1102", "gfx1103"), ("gfx110x-all",)),
    }


def test_generic_code_serves_the_targets_that_have_none_of_their_own() -> None:
    assert choices(package("gfx9-4-generic"), package("gfx942")) == {
        "gfx9_4_generic": (("gfx950",), ("gfx9-4-generic",)),
        "gfx942": (("gfx942",), ("gfx942",)),
    }


def test_code_that_was_relabelled_serves_the_targets_that_it_names() -> None:
    assert choices(package("gfx1030", "gfx1030", "gfx1031"), package("gfx10-3-generic")) == {
        "gfx1030": (("gfx1030", "gfx1031"), ("gfx1030",)),
        "gfx10_3_generic": (("gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"), ("gfx10-3-generic",)),
    }


def test_kernels_that_targets_share_come_with_each_of_them() -> None:
    assert choices(package("gfx1200"), package("gfx1201"), package("gfx12-0")) == {
        "gfx1200": (("gfx1200",), ("gfx1200", "gfx12-0")),
        "gfx1201": (("gfx1201",), ("gfx1201", "gfx12-0")),
    }


def test_two_variants_of_one_first_package_have_different_labels() -> None:
    found = choices(package("gfx1153", "gfx1153", "gfx1200"), package("gfx12-0", "gfx1200"))
    assert found == {
        "gfx1153": (("gfx1153",), ("gfx1153",)),
        "gfx1153_gfx1200": (("gfx1200",), ("gfx1153", "gfx12-0")),
    }
