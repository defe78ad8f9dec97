"""Tests of `rocwheel.build.planning.checks`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.build.plan import Member, PlannedWheel, TarEntry, TarMember, TextMember
from rocwheel.build.planning.checks import long_paths, windows_path_problems
from rocwheel.build.planning.make_plan import make_plan
from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.recipe_file import load_recipe
from rocwheel.core.errors import ProblemsError
from rocwheel.wheels.metadata import CoreMetadata
from rocwheel.wheels.writing import WheelName
from tests.build.trees import file_entry, make_catalog, make_facts

if TYPE_CHECKING:
    from rocwheel.build.plan import Plan


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


def wheel(*paths: str, name: str = "core", folder: str = "", links: tuple[str, ...] = ()) -> PlannedWheel:
    members: list[Member] = [TextMember(path, "") for path in paths]
    members.append(TarMember("m/_devel.tar", "none", (), links))
    metadata = CoreMetadata(name, "1.0", "a package", ">=3.9")
    return PlannedWheel("core", WheelName(name, "1.0", "py3-none-win_amd64"), metadata, tuple(members), folder=folder)


def told(*wheels: PlannedWheel) -> list[str]:
    return [str(problem) for problem in windows_path_problems(wheels)]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        pytest.param("_core/.kpack/gfx90a:xnack+.kpack", "a colon", id="colon"),
        pytest.param("_core/aux.h", "device AUX", id="device"),
        pytest.param("_core/include./a.h", "ends with a dot", id="dot"),
        pytest.param("_core/a ", "ends with a blank", id="blank"),
        pytest.param(f"_core/{'a' * 140}/{'b' * 140}", "is a path of 287 characters; expected at most 236", id="long"),
    ],
)
def test_what_windows_refuses_is_named(path: str, said: str) -> None:
    [problem] = told(wheel("_core/fine.h", path))
    assert problem.startswith(f"{path}: ")
    assert said in problem


def test_names_in_the_devel_tree_count_too() -> None:
    assert told(wheel(links=("_devel/a:b",)))[0].startswith("_devel/a:b: ")
    tar = TarMember("m/_devel.tar", "none", (TarEntry("_devel/nul", 0o644),))
    one = PlannedWheel("devel", wheel().name, wheel().metadata, (tar,))
    assert told(one)[0].startswith("_devel/nul: ")


def test_names_that_differ_only_in_case_are_told_across_wheels() -> None:
    [problem] = told(wheel("_core/bin/A.dll"), wheel("_core/bin/a.dll", name="other"))
    assert problem == (
        "_core/bin/A.dll: differs from _core/bin/a.dll only in case: Windows has one file for both. "
        "Rename it, or leave it out by the recipe (leave-out)."
    )


def test_packages_of_different_families_are_never_installed_together() -> None:
    shared, one, other = wheel("_core/a"), wheel("_x/B", folder="gfx94X"), wheel("_x/b", folder="gfx110X")
    assert told(shared, one, other) == []
    assert len(told(shared, one, wheel("_X/b", "_core/A", folder="gfx110X"))) == 1


def test_a_path_that_leaves_little_to_site_packages_is_a_warning() -> None:
    long = "_core/" + "a" * 190
    [warning] = long_paths([[wheel("_core/short", long)]], 80)
    assert (warning.kind, warning.subject, warning.files) == ("long-path", "core-1.0-py3-none-win_amd64.whl", (long,))
    found = f"has 1 path that leave site-packages less than 80 characters; the longest leaves 62: {long}"
    assert warning.found == found
    assert list(long_paths([[wheel(long)]], 60)) == []
