"""Plans of repairs of described wheels."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from rocwheel.environment.tree import split_environments
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.repair_plan import RepairPlan, RepairPlanner
from tests.support.trees import library, package, tree

if TYPE_CHECKING:
    from rocwheel.audit.wheel_toolkits import ToolkitOption
    from rocwheel.environment.tree import Distribution, InstalledFile

__all__ = ["SDK", "Part", "plan", "run_paths"]

Part: TypeAlias = "tuple[Distribution, list[InstalledFile]]"
"""A package with its files."""

SDK: list[Part] = [
    (
        package("rocm-sdk-core", version="7.1.2", is_context=True),
        [library("_rocm_sdk_core/lib/libamdhip64.so.7"), library("_rocm_sdk_core/lib/libhsa-runtime64.so.1")],
    ),
    (
        package("rocm-sdk-libraries", version="7.1.2", is_context=True),
        [library("_rocm_sdk_libraries/lib/librccl.so.1"), library("_rocm_sdk_libraries/lib/libhipblas.so.3")],
    ),
]
"""The SDK's packages, at hand."""


def plan(
    *files: InstalledFile, beside: list[Part] | None = None, toolkit: ToolkitOption = "auto", requires: str = ""
) -> RepairPlan:
    """Return the plan for a wheel ``demo`` with these files and one requirement."""
    made = tree((package(requires=(requires,) if requires else ()), [*files]), *(beside or []))
    return RepairPlanner(split_environments(made), RepairOptions(toolkit=toolkit)).plan(made.distributions[0])


def run_paths(made: RepairPlan) -> dict[str, str]:
    """Return the new run paths of a plan, by the files' paths in the package."""
    return {name.removeprefix("demo/"): edit.value for name, edit in made.edits.items()}
