"""Tests of `rocwheel.build.planning.selector_facts`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.build.planning.make_plan import make_plan
from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.recipe import load_recipe
from rocwheel.core.errors import InputError
from tests.build.selectors import BLAS, CORE, build_info, literals, plan
from tests.build.trees import file_entry, make_catalog, make_facts

if TYPE_CHECKING:
    from collections.abc import Mapping


def families(files: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    """Return what each device package serves; ``files`` are "TARGET/PATH" with the targets of their code."""
    return {name: row["targets"] for name, row in _info(files)["FAMILIES"].items()}


def _info(files: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    entries = {}
    for text, targets in files.items():
        target, _, path = text.partition("/")
        entries[file_entry(path, f"blas_lib_{target}")] = targets
    catalog = make_catalog(CORE, BLAS, *entries, flags={"KPACK_SPLIT_ARTIFACTS": True})
    made = make_plan(catalog, load_recipe(), make_facts(targets=entries), PlanOptions())
    return literals(made.sdists[0].files["src/rocm_sdk/_build_info.py"])


GENERIC = {"gfx11-generic/.kpack/blas_gfx11-generic.kpack": ("gfx11-generic",)}


def test_generic_code_serves_each_gpu_of_its_kind_that_has_no_package() -> None:
    found = families({**GENERIC, "gfx1100/.kpack/blas_gfx1100.kpack": ("gfx1100",)})
    assert found["gfx11-generic"][0] == "gfx11-generic"
    assert {"gfx1101", "gfx1103", "gfx1151"} <= set(found["gfx11-generic"])
    assert "gfx1100" not in found["gfx11-generic"]
    assert found["gfx1100"] == ["gfx1100"]


def test_relabeled_code_serves_the_gpu_that_it_is_for() -> None:
    found = families({"gfx1030/lib/librocfft.so": ("gfx1030", "gfx1031")})
    assert found == {"gfx1030": ["gfx1030", "gfx1031"]}


def test_early_silicon_of_gfx1250_has_its_code_in_the_package_of_gfx1250() -> None:
    files = {
        "gfx1250/.kpack/blas_gfx1250.kpack": ("gfx1250",),
        "gfx1250-strict/.kpack/blas_gfx1250-strict.kpack": ("gfx1250-strict",),
    }
    assert families(files) == {"gfx1250": ["gfx1250", "gfx1250-strict"]}
    assert families({"gfx1250/.kpack/blas_gfx1250.kpack": ("gfx1250",)}) == {"gfx1250": ["gfx1250"]}


def test_a_gpu_that_one_file_has_no_code_for_is_not_served() -> None:
    found = families({"gfx1030/lib/a.so": ("gfx1030", "gfx1031"), "gfx1030/lib/b.so": ("gfx1030",)})
    assert found == {"gfx1030": ["gfx1030"]}


def test_kernel_files_serve_those_alone_whom_their_names_name() -> None:
    kernels = "lib/rocblas/library/Kernels.so-000"
    alone = families({f"gfx11-generic/{kernels}-gfx11-generic.hsaco": ("gfx11-generic",)})
    assert alone == {"gfx11-generic": ["gfx11-generic"]}
    both = {f"gfx1030/{kernels}-{name}.hsaco": (name,) for name in ("gfx1030", "gfx1031")}
    assert families(both) == {"gfx1030": ["gfx1030", "gfx1031"]}


def test_relabeled_code_is_preferred_to_generic_code() -> None:
    found = families(
        {
            "gfx10-3-generic/.kpack/b_gfx10-3-generic.kpack": ("gfx10-3-generic",),
            "gfx1030/lib/a.so": ("gfx1030", "gfx1031"),
        }
    )
    assert found["gfx1030"] == ["gfx1030", "gfx1031"]
    assert "gfx1032" in found["gfx10-3-generic"]
    assert "gfx1031" not in found["gfx10-3-generic"]


def test_an_extra_of_a_served_gpu_brings_the_package_that_serves_it() -> None:
    extras = _info(GENERIC)["EXTRAS"]
    assert extras["device-gfx1103"] == [["rocm-sdk-device-gfx11-generic==7.2.0", ""]]
    assert extras["device-all"] == [["rocm-sdk-device-gfx11-generic==7.2.0", ""]]
    assert "is.not.in.this.release" in extras["device-gfx942"][0][0]


def test_no_target_is_a_default_just_for_being_first() -> None:
    assert build_info("gfx906", "gfx1030")["DEFAULT_FAMILY"] == ""


def test_a_lone_target_is_the_default() -> None:
    assert build_info("gfx906")["DEFAULT_FAMILY"] == "gfx906"


def test_a_default_that_a_person_chose_is_written() -> None:
    made = plan("gfx906", "gfx1030", options=PlanOptions(default_family="gfx1030"))
    assert literals(made.sdists[0].files["src/rocm_sdk/_build_info.py"])["DEFAULT_FAMILY"] == "gfx1030"


def test_a_default_without_packages_is_refused() -> None:
    expected = "--default-family: 'gfx942' has no packages; expected one of gfx906, gfx1030"
    with pytest.raises(InputError, match=re.escape(expected)):
        plan("gfx906", "gfx1030", options=PlanOptions(default_family="gfx942"))
