"""Warnings about DLLs that nobody brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.platform import Platform
from rocwheel.packages.planning.make_plan import make_plan
from rocwheel.packages.planning.options import PlanOptions
from rocwheel.packages.recipe.load import load_recipe
from tests.packages.trees import file_entry, make_catalog, make_facts
from tests.support.pe_files import pe_file

if TYPE_CHECKING:
    from rocwheel.packages.plan import PlanWarning

HIP = file_entry("bin/amdhip64_7.dll", "core-hip_lib_generic")
BLAS = file_entry("bin/rocblas.dll", "blas_lib_generic")
TOOL = file_entry("bin/tool.exe", "blas_dev_generic")


def missing(*imports: str, delayed: tuple[str, ...] = (), system: tuple[str, ...] = ()) -> list[PlanWarning]:
    """Return the warnings about what a DLL of the libraries loads."""
    blas = read_pe(pe_file("rocblas.dll", *imports, delayed=delayed), name="rocblas.dll")
    images = {entry.source: blas for entry in (BLAS,) if entry.source}
    facts = msgspec.structs.replace(make_facts(), platform=Platform.WINDOWS, images=images)
    recipe = load_recipe()
    recipe = msgspec.structs.replace(recipe, audit=msgspec.structs.replace(recipe.audit, system_libraries=system))
    plan = make_plan(make_catalog(HIP, BLAS, TOOL), recipe, facts, PlanOptions())
    return [warning for warning in plan.warnings if warning.kind == "missing-library"]


@pytest.mark.parametrize(
    "name", ["AMDHIP64_7.dll", "KERNEL32.dll", "api-ms-win-crt-heap-l1-1-0.dll", "vcruntime140.dll"]
)
def test_dlls_of_packages_and_of_windows_are_there_in_any_case(name: str) -> None:
    assert missing(name) == []


@pytest.mark.parametrize("is_delayed", [False, True])
def test_a_dll_that_nobody_brings_is_told(*, is_delayed: bool) -> None:
    names = ("hipblaslt.dll",)
    [warning] = missing(delayed=names) if is_delayed else missing(*names)
    path = "_rocm_sdk_libraries/bin/rocblas.dll"
    assert (warning.subject, warning.files) == ("hipblaslt.dll", (path,))
    assert warning.found == f"needed by {path}, but no package has it, and Windows doesn't either"


def test_a_debug_run_time_library_is_told_as_such() -> None:
    [warning] = missing("VCRUNTIME140D.dll", "MSVCP140.dll")
    path = "_rocm_sdk_libraries/bin/rocblas.dll"
    assert (warning.subject, warning.files) == ("VCRUNTIME140D.dll", (path,))
    assert warning.found == f"needed by {path}, which only machines with Visual Studio have"
    assert warning.remedy == "Build for release (/MD instead of /MDd)."


def test_the_recipe_may_say_that_systems_have_a_dll() -> None:
    assert missing("vendor_1.dll", system=("Vendor_*.dll",)) == []
