"""Names and paths that no file system takes stop a build before anything is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import ProblemsError
from rocwheel.packages.planning.make_plan import make_plan
from rocwheel.packages.planning.options import PlanOptions
from rocwheel.packages.recipe.load import load_recipe
from tests.packages.trees import file_entry, make_catalog, make_facts

if TYPE_CHECKING:
    from rocwheel.packages.plan import Plan

HIP = file_entry("lib/libamdhip64.so.7", "core-hip_lib_generic")
BLAS = file_entry("lib/librocblas.so.5", "blas_lib_generic")


def plan(path: str = "lib/x", artifact: str = "core-hip_lib_generic", version: str = "7.2.0") -> Plan:
    catalog = make_catalog(HIP, BLAS, file_entry(path, artifact))
    return make_plan(catalog, load_recipe(), make_facts(), PlanOptions(version=version))


def refusal(path: str = "lib/x", artifact: str = "core-hip_lib_generic", version: str = "7.2.0") -> list[str]:
    with pytest.raises(ProblemsError) as raised:
        plan(path, artifact, version)
    return [str(problem) for problem in raised.value.problems]


def test_the_longest_name_is_taken() -> None:
    assert plan(f"lib/{'x' * 255}").wheels


def test_a_longer_name_is_refused_in_bytes() -> None:
    shown = f"_rocm_sdk_core/lib/{'é' * 81}..."
    rest = "has a name of 256 bytes; expected at most 255. Rename it, or exclude it in the recipe."
    problems = refusal(f"lib/{'é' * 128}")
    assert problems[0] == f"{shown}: {rest}"


def test_a_longer_name_in_the_devel_tar_is_refused() -> None:
    (problem,) = refusal(f"include/{'x' * 256}/a.h", "core-hop_dev_generic")
    assert problem.startswith("_rocm_sdk_devel/include/xxx")


def test_a_path_that_leaves_no_room_for_site_packages_is_refused() -> None:
    assert plan(f"{'d/' * 1700}x").wheels
    problems = refusal(f"{'d/' * 3000}x")
    assert (
        "...: is a path of 6016 bytes; expected at most 3584, as Linux allows 4096 together with the path of "
        "site-packages. Rename it, or exclude it in the recipe."
    ) in problems[0]


def test_a_version_that_makes_the_names_of_the_packages_too_long_is_refused() -> None:
    problems = refusal(version="1+" + "x" * 250)
    too_long = [problem for problem in problems if "Shorten --version" in problem]
    assert len(too_long) == 4
    assert too_long[-1].endswith("has a name of 264 bytes; expected at most 245. Shorten --version or the name.")
