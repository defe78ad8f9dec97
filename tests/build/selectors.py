"""Plans of the package that chooses others, and what it says of itself."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from rocwheel.build.planning.make_plan import make_plan
from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.recipe import load_recipe
from tests.build.trees import file_entry, make_catalog, make_facts

if TYPE_CHECKING:
    from rocwheel.build.plan import Plan

__all__ = ["BLAS", "CORE", "build_info", "literals", "plan"]

CORE = file_entry("bin/hipcc", "core-hip_run_generic", mode=0o755)
BLAS = file_entry("lib/librocblas.so.5", "blas_lib_generic")


def plan(*targets: str, kpack: bool = True, options: PlanOptions | None = None) -> Plan:
    """Plan the packages of a program and a library, and of a kernel file for each target."""
    kernels = [file_entry(f"lib/{target}.co", f"blas_lib_{target}") for target in targets]
    catalog = make_catalog(CORE, BLAS, *kernels, flags={"KPACK_SPLIT_ARTIFACTS": kpack})
    return make_plan(catalog, load_recipe(), make_facts(), options or PlanOptions())


def literals(text: str) -> dict[str, Any]:
    """Read the assignments of a generated module without running it."""
    body = [node for node in ast.parse(text).body if isinstance(node, ast.Assign)]
    return {node.targets[0].id: ast.literal_eval(node.value) for node in body if isinstance(node.targets[0], ast.Name)}


def build_info(*targets: str, kpack: bool = True) -> dict[str, Any]:
    """Return what the sdist of such packages knows."""
    return literals(plan(*targets, kpack=kpack).sdists[0].files["src/rocm_sdk/_build_info.py"])
