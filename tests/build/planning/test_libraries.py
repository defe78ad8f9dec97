"""Tests of `rocwheel.build.planning.libraries`."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.platform import Platform
from rocwheel.build.planning.libraries import ShippedDll, dll_libraries, load_orders, short_name
from rocwheel.build.planning.make_plan import make_plan
from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.recipe import PublicLibrary, load_recipe
from tests.build.selectors import literals
from tests.build.trees import file_entry, make_catalog, make_facts
from tests.support.pe_files import pe_file


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("amdhip64_7.dll", "amdhip64"),
        ("amd_comgr0713.dll", "amd_comgr"),
        ("hiprtc07013.dll", "hiprtc"),
        ("hiprtc-builtins07013.dll", "hiprtc-builtins"),
        ("libhipblaslt.dll", "hipblaslt"),
        ("MIOpen.dll", "miopen"),
        ("amdocl64.dll", "amdocl64"),
        ("rocm-openblas64.dll", "rocm-openblas64"),
        ("MIOpenCKGroupedConv_gfx1151.dll", "miopenckgroupedconv_gfx1151"),
        ("rocblas.DLL", "rocblas"),
        ("libomp140.x86_64.dll", "omp140.x86_64"),
    ],
)
def test_a_short_name_has_no_version_and_no_prefix(file: str, name: str) -> None:
    assert short_name(file) == name


def dll(name: str, *imports: str, package: str = "libraries") -> ShippedDll:
    return ShippedDll(package, f"bin/{name}.dll", tuple(f"{other}.dll" for other in imports))


def ordered(of: str, *dlls: ShippedDll) -> list[str]:
    [number] = [number for number, one in enumerate(dlls) if one.name == f"{of}.dll"]
    return [dlls[needed].name.removesuffix(".dll") for needed in load_orders(dlls)[number]]


def test_dependencies_of_a_dll_are_loaded_in_dependency_order() -> None:
    order = ordered(
        "hipblas",
        dll("hipblas", "rocsolver", "rocblas"),
        dll("rocblas", "hip"),
        dll("rocsolver", "rocblas"),
        dll("hip", "comgr", "KERNEL32"),
        dll("comgr"),
    )
    assert order == ["comgr", "hip", "rocblas", "rocsolver"]


def test_imports_are_followed_in_import_table_order() -> None:
    assert ordered("a", dll("a", "z", "b"), dll("b"), dll("z")) == ["z", "b"]


def test_import_names_match_file_names_regardless_of_case() -> None:
    assert ordered("a", ShippedDll("core", "bin/a.dll", ("B.DLL",)), dll("b")) == ["b"]


def test_an_import_cycle_starts_at_the_requested_dll_and_ends() -> None:
    loop = (dll("a", "b"), dll("b", "c"), dll("c", "a", "b"))
    assert [ordered(of, *loop) for of in "abc"] == [["c", "b"], ["a", "c"], ["b", "a"]]
    assert ordered("self", dll("self", "self")) == []


def test_a_dll_in_two_packages_resolves_to_the_first_package() -> None:
    assert load_orders([dll("hip", package="core"), dll("hip"), dll("a", "hip")]) == [[], [], [0]]


def test_an_import_chain_of_any_length_is_followed() -> None:
    chain = [dll(f"d{n}", f"d{n + 1}") for n in range(1500)]
    assert [len(order) for order in load_orders(chain)] == list(range(1499, -1, -1))


def test_dlls_that_all_import_each_other_are_ordered_in_reasonable_time() -> None:
    # Comparing or hashing a DLL takes as long as its table is: that made rows of 200 such DLLs take five seconds.
    names = [f"d{n}x" for n in range(200)]
    begun = time.process_time()
    rows = dll_libraries([dll(name, *names) for name in names], {})
    assert time.process_time() - begun < 3
    assert {len(row["needs"]) for row in rows.values()} == {199}


@given(st.dictionaries(st.sampled_from("abcdefg"), st.lists(st.sampled_from("abcdefgh"), max_size=5)))
def test_without_cycles_every_dll_comes_after_its_dependencies(graph: dict[str, list[str]]) -> None:
    # Only imports of later letters count, so there is no loop.
    dlls = {name: dll(name, *(other for other in imports if other > name)) for name, imports in graph.items()}
    listed = list(dlls.values())
    for order in load_orders(listed):
        done: set[str] = set()
        for needed in (listed[number] for number in order):
            assert {name for name in needed.imports if name[0] in dlls} <= done
            done.add(needed.name)


NAMED = {
    "amdhip64": PublicLibrary("core", "amdhip64*.dll", "bin"),
    "hipblas": PublicLibrary("libraries", "*hipblas.dll", "bin"),
    "hipdnn": PublicLibrary("libraries", "hipdnn_backend*.dll", "bin"),
    "rccl": PublicLibrary("libraries", "rccl*.dll", "bin"),
}


def test_each_dll_has_a_name_and_the_recipe_can_choose_the_name() -> None:
    dlls = [
        dll("amdhip64_7", package="core"),
        dll("hipblas", "rocblas"),
        dll("hipdnn_backend"),
        dll("libhipblaslt"),
        dll("rocblas", "amdhip64_7"),
    ]
    rows = dll_libraries(dlls, NAMED)
    assert {name: row["pattern"] for name, row in rows.items()} == {
        "amdhip64": "amdhip64_7.dll",
        "hipblas": "hipblas.dll",
        "hipdnn": "hipdnn_backend.dll",
        "rccl": "rccl*.dll",
        "hipblaslt": "libhipblaslt.dll",
        "rocblas": "rocblas.dll",
    }
    assert rows["hipblas"] == {
        "package": "libraries",
        "directory": "bin",
        "pattern": "hipblas.dll",
        "optional": False,
        "needs": ["amdhip64", "rocblas"],
    }
    assert rows["rccl"] == {"package": "libraries", "directory": "bin", "pattern": "rccl*.dll", "optional": True}


def test_two_dlls_never_share_a_name() -> None:
    rows = dll_libraries([dll("x_1"), dll("x_2"), dll("libx_2"), dll("x_2", package="core")], {})
    assert {name: row["pattern"] for name, row in rows.items()} == {
        "x": "x_1.dll",
        "x_2": "x_2.dll",
        "libx_2": "libx_2.dll",
        "x_2.dll": "x_2.dll",
    }


def test_packages_list_the_libraries_to_load_before_each_library() -> None:
    files = {
        "bin/amd_comgr0713.dll": ("core-hip_lib_generic", ("KERNEL32.dll",), ()),
        "bin/amdhip64_7.dll": ("core-hip_lib_generic", ("AMD_COMGR0713.dll",), ("rocblas.dll",)),
        "bin/rocblas.dll": ("blas_lib_generic", ("amdhip64_7.dll",), ()),
        "bin/rocsolver.dll": ("blas_lib_generic", ("rocblas.dll",), ()),
        "bin/hipdnn_plugins/engines/one.dll": ("blas_lib_generic", ("rocblas.dll",), ()),
        "bin/MIOpenCK_gfx1151.dll": ("miopen_lib_gfx1151", ("amdhip64_7.dll",), ()),
    }
    entries = {path: file_entry(path, artifact) for path, (artifact, _, _) in files.items()}
    images = {
        entries[path].source: read_pe(pe_file(path.rpartition("/")[2], *now, delayed=later), name=path)
        for path, (_, now, later) in files.items()
    }
    facts = msgspec.structs.replace(make_facts(), platform=Platform.WINDOWS, images=images)
    made = make_plan(make_catalog(*entries.values()), load_recipe(), facts, PlanOptions())
    libraries = literals(made.sdists[0].files["src/rocm_sdk/_build_info.py"])["LIBRARIES"]
    there = {name: row for name, row in libraries.items() if "needs" in row}
    assert {name: row["needs"] for name, row in there.items()} == {
        "amd_comgr": [],
        "amdhip64": ["amd_comgr"],
        "rocblas": ["amd_comgr", "amdhip64"],
        "rocsolver": ["amd_comgr", "amdhip64", "rocblas"],
        "miopenck_gfx1151": ["amd_comgr", "amdhip64"],
    }
    assert there["miopenck_gfx1151"]["optional"]
    assert there["miopenck_gfx1151"]["package"] == "device"
    assert there["amdhip64"]["pattern"] == "amdhip64_7.dll"
