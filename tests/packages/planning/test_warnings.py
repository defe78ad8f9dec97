"""What a plan warns of: libraries that nothing brings, tags that promise too much, preferences for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.elf.versions import VersionNeed
from rocwheel.packages.plan import PlanWarning
from rocwheel.packages.planning.make_plan import make_plan
from rocwheel.packages.planning.options import PlanOptions
from rocwheel.packages.recipe.load import load_recipe
from rocwheel.packages.recipe.recipe import Prefer, Recipe
from tests.packages.trees import file_entry, library, link_entry, make_catalog, make_facts, program

if TYPE_CHECKING:
    from rocwheel.artifacts.catalog import Entry
    from rocwheel.binary.elf.facts import Elf

HIP = file_entry("lib/libamdhip64.so.7", "core-hip_lib_generic")
BLAS = file_entry("lib/librocblas.so.5", "blas_lib_generic")
HIPCC = file_entry("bin/hipcc", "core-hip_run_generic", mode=0o755)
TEST = file_entry("bin/blas-test", "blas_dev_generic", mode=0o755)
STUB = file_entry("lib/stubs/libcuda.so.1", "core-hip_dev_generic")
REMEDY = (
    "Add what is missing to the artifacts of a runtime package (from Debian: from-deb --bundle-sysdeps), or, if every "
    "target system has it, to system-libraries under [audit] in the recipe."
)


def warnings(
    elves: dict[Entry, Elf], *, options: PlanOptions | None = None, recipe: Recipe | None = None
) -> tuple[PlanWarning, ...]:
    catalog = make_catalog(HIP, BLAS, HIPCC, TEST, STUB)
    facts = make_facts({HIP: library("libamdhip64.so.7"), BLAS: library("librocblas.so.5"), **elves})
    return make_plan(catalog, recipe or load_recipe(), facts, options or PlanOptions()).warnings


def test_a_library_that_no_package_has_is_reported_once_with_all_that_need_it() -> None:
    found = warnings(
        {
            HIP: library("libamdhip64.so.7", "libnuma.so.1", "libc.so.6"),
            BLAS: library("librocblas.so.5", "libnuma.so.1", "libamdhip64.so.7"),
        }
    )
    assert found == (
        PlanWarning(
            "missing-library",
            "libnuma.so.1",
            "needed by _rocm_sdk_core/lib/libamdhip64.so.7 and 1 more, "
            "but no package or allowed system library provides it",
            REMEDY,
            ("_rocm_sdk_core/lib/libamdhip64.so.7", "_rocm_sdk_libraries/lib/librocblas.so.5"),
        ),
    )


def test_a_library_that_only_builds_get_is_missing_at_run_time() -> None:
    (found,) = warnings({HIPCC: program("libcuda.so.1"), STUB: library("libcuda.so.1")})
    assert (found.subject, found.found) == (
        "libcuda.so.1",
        "needed by _rocm_sdk_core/bin/hipcc, but only rocm-sdk-devel provides it",
    )


def test_development_files_may_need_their_neighbours() -> None:
    assert warnings({TEST: program("libcuda.so.1", "librocblas.so.5"), STUB: library("libcuda.so.1")}) == ()


def test_development_files_that_nothing_serves_are_reported() -> None:
    (found,) = warnings({TEST: program("libgtest.so.1")})
    assert found.files == ("_rocm_sdk_devel/bin/blas-test",)


def test_the_recipe_says_what_every_system_has() -> None:
    recipe = msgspec.structs.replace(load_recipe(), audit=AuditSettings(system_libraries=("libnuma.so.*",)))
    assert warnings({HIP: library("libamdhip64.so.7", "libnuma.so.1")}, recipe=recipe) == ()


@pytest.mark.parametrize(
    ("tag", "found"),
    [
        pytest.param("manylinux_2_28_x86_64", None, id="newer"),
        pytest.param("manylinux_2_17_x86_64", None, id="the same"),
        pytest.param("manylinux2014_x86_64", None, id="old name"),
        pytest.param("linux_x86_64", "has the tag linux_x86_64, which public indexes refuse", id="without a promise"),
        pytest.param(
            "manylinux_2_12_x86_64",
            "promises glibc 2.12, but lib/libamdhip64.so.7: GLIBC_2.17 needs 2.17",
            id="older",
        ),
        pytest.param(
            "manylinux_2_28_x86_64.manylinux1_x86_64",
            "promises glibc 2.5, but lib/libamdhip64.so.7: GLIBC_2.17 needs 2.17",
            id="older among several",
        ),
    ],
)
def test_a_tag_that_promises_more_than_the_files_keep_is_reported(tag: str, found: str | None) -> None:
    hip = msgspec.structs.replace(library("libamdhip64.so.7"), version_needs=(VersionNeed("libc.so.6", "GLIBC_2.17"),))
    told = warnings({HIP: hip}, options=PlanOptions(platform_tag=tag))
    core = [warning for warning in told if warning.subject.startswith("rocm_sdk_core-")]
    remedy = "Build without a platform tag, or with manylinux_2_17_x86_64."
    name = f"rocm_sdk_core-7.2.0-py3-none-{tag}.whl"
    assert core == ([PlanWarning("platform-tag", name, found, remedy)] if found else [])


@pytest.mark.parametrize("artifact", ["core-hip", "core-hip_lib_generic"])
def test_a_preference_for_an_artifact_that_is_there_does_not_matter(artifact: str) -> None:
    recipe = msgspec.structs.replace(load_recipe(), prefer=(Prefer("bin/**", artifact, "the newer one"),))
    assert warnings({}, recipe=recipe) == ()


def test_a_preference_for_an_artifact_that_is_not_there_is_reported() -> None:
    recipe = msgspec.structs.replace(load_recipe(), prefer=(Prefer("bin/**", "core-hop", "the newer one"),))
    assert warnings({}, recipe=recipe) == (
        PlanWarning(
            "unknown-artifact",
            "[[prefer]] bin/**",
            "prefers the artifact core-hop, which is not there",
            "Correct or remove the row.",
        ),
    )


def test_symlinks_that_lead_nowhere_are_named_by_artifact() -> None:
    links = [link_entry("bin/gone", "nowhere"), link_entry("loop", "loop"), link_entry("lib/one", "librocblas.so.5")]
    catalog = make_catalog(HIP, BLAS, *links)
    facts = make_facts({HIP: library("libamdhip64.so.7"), BLAS: library("librocblas.so.5")})
    artifact = str(links[0].artifact)
    (found,) = make_plan(catalog, load_recipe(), facts, PlanOptions()).warnings
    assert (found.kind, found.subject, found.files) == ("broken-link", artifact, ("bin/gone", "loop"))
    assert found.found == (
        "bin/gone is a symlink to bin/nowhere, but no artifact contains it, and 1 more such symlink: left out"
    )
