"""Tests of `rocwheel.build.planning.checks`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.elf.symbols import VersionNeed
from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.platform import Platform
from rocwheel.build.plan import Member, PlannedWheel, PlanWarning, TarEntry, TarMember, TextMember
from rocwheel.build.planning.checks import foreign_binaries, import_libraries, long_paths, windows_path_problems
from rocwheel.build.planning.make_plan import make_plan
from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.recipe import Prefer, Recipe, load_recipe
from rocwheel.core.errors import ProblemsError
from rocwheel.wheels.metadata import CoreMetadata
from rocwheel.wheels.writing import WheelName
from tests.build.trees import file_entry, library, link_entry, make_catalog, make_facts, program
from tests.support.pe_files import pe_file

if TYPE_CHECKING:
    from rocwheel.artifacts.catalog import Entry
    from rocwheel.binary.elf.facts import Elf
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


def test_a_name_of_the_maximum_length_is_accepted() -> None:
    assert plan(f"lib/{'x' * 255}").wheels


def test_a_name_that_is_too_long_in_bytes_is_refused() -> None:
    shown = f"_rocm_sdk_core/lib/{'é' * 81}..."
    rest = "has a name that is 256 bytes long; expected at most 255. Rename the file, or exclude it in the recipe."
    problems = refusal(f"lib/{'é' * 128}")
    assert problems[0] == f"{shown}: {rest}"


def test_a_name_that_is_too_long_in_the_devel_tar_is_refused() -> None:
    (problem,) = refusal(f"include/{'x' * 256}/a.h", "core-hop_dev_generic")
    assert problem.startswith("_rocm_sdk_devel/include/xxx")


def test_a_path_too_long_for_any_site_packages_folder_is_refused() -> None:
    assert plan(f"{'d/' * 1700}x").wheels
    problems = refusal(f"{'d/' * 3000}x")
    assert (
        "...: is 6016 bytes long; expected at most 3584, because Linux allows 4096, including the path of "
        "site-packages. Rename the file, or exclude it in the recipe."
    ) in problems[0]


def test_a_version_that_makes_package_names_too_long_is_refused() -> None:
    problems = refusal(version="1+" + "x" * 250)
    too_long = [problem for problem in problems if "a shorter --version" in problem]
    assert len(too_long) == 4
    assert too_long[-1].endswith(
        "has a name that is 264 bytes long; expected at most 245. Shorten the name, or choose a shorter --version."
    )


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
        pytest.param("_core/a ", "ends with a space", id="blank"),
        pytest.param(f"_core/{'a' * 140}/{'b' * 140}", "is 287 characters long; expected at most 236", id="long"),
    ],
)
def test_names_that_windows_refuses_are_reported(path: str, said: str) -> None:
    [problem] = told(wheel("_core/fine.h", path))
    assert problem.startswith(f"{path}: ")
    assert said in problem


def test_names_in_the_devel_tree_are_also_checked() -> None:
    assert told(wheel(links=("_devel/a:b",)))[0].startswith("_devel/a:b: ")
    tar = TarMember("m/_devel.tar", "none", (TarEntry("_devel/nul", 0o644),))
    one = PlannedWheel("devel", wheel().name, wheel().metadata, (tar,))
    assert told(one)[0].startswith("_devel/nul: ")


def test_names_that_differ_only_in_case_are_reported_across_wheels() -> None:
    [problem] = told(wheel("_core/bin/A.dll"), wheel("_core/bin/a.dll", name="other"))
    assert problem == (
        "_core/bin/A.dll: differs from _core/bin/a.dll only in case, so Windows treats them as one file. "
        "Rename the file, or leave it out with leave-out in the recipe."
    )


def test_packages_for_different_families_cannot_conflict() -> None:
    shared, one, other = wheel("_core/a"), wheel("_x/B", folder="gfx94X"), wheel("_x/b", folder="gfx110X")
    assert told(shared, one, other) == []
    assert len(told(shared, one, wheel("_X/b", "_core/A", folder="gfx110X"))) == 1


def test_a_path_that_leaves_little_room_for_site_packages_is_a_warning() -> None:
    long = "_core/" + "a" * 190
    [warning] = long_paths([[wheel("_core/short", long)]], 80)
    assert (warning.kind, warning.subject, warning.files) == ("long-path", "core-1.0-py3-none-win_amd64.whl", (long,))
    found = f"has 1 path that leaves fewer than 80 characters for site-packages; the longest path leaves 62: {long}"
    assert warning.found == found
    assert list(long_paths([[wheel(long)]], 60)) == []


HIPCC = file_entry("bin/hipcc", "core-hip_run_generic", mode=0o755)
TEST = file_entry("bin/blas-test", "blas_dev_generic", mode=0o755)
STUB = file_entry("lib/stubs/libcuda.so.1", "core-hip_dev_generic")
REMEDY = (
    "Add the library to the artifacts of a runtime package (from Debian: 'artifacts import --bundle-sysdeps'). "
    "If every target system has the library, add it to system-libraries under [audit] in the recipe instead."
)


def warnings(
    elves: dict[Entry, Elf], *, options: PlanOptions | None = None, recipe: Recipe | None = None
) -> tuple[PlanWarning, ...]:
    catalog = make_catalog(HIP, BLAS, HIPCC, TEST, STUB)
    facts = make_facts({HIP: library("libamdhip64.so.7"), BLAS: library("librocblas.so.5"), **elves})
    return make_plan(catalog, recipe or load_recipe(), facts, options or PlanOptions()).warnings


def test_a_missing_library_is_reported_once_with_all_its_users() -> None:
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


def test_a_library_available_only_at_build_time_is_missing_at_run_time() -> None:
    (found,) = warnings({HIPCC: program("libcuda.so.1"), STUB: library("libcuda.so.1")})
    assert (found.subject, found.found) == (
        "libcuda.so.1",
        "needed by _rocm_sdk_core/bin/hipcc, but only rocm-sdk-devel provides it",
    )


def test_development_files_may_need_other_development_files() -> None:
    assert warnings({TEST: program("libcuda.so.1", "librocblas.so.5"), STUB: library("libcuda.so.1")}) == ()


def test_development_files_with_unmet_dependencies_are_reported() -> None:
    (found,) = warnings({TEST: program("libgtest.so.1")})
    assert found.files == ("_rocm_sdk_devel/bin/blas-test",)


def test_the_recipe_lists_allowed_system_libraries() -> None:
    recipe = msgspec.structs.replace(load_recipe(), audit=AuditSettings(system_libraries=("libnuma.so.*",)))
    assert warnings({HIP: library("libamdhip64.so.7", "libnuma.so.1")}, recipe=recipe) == ()


@pytest.mark.parametrize(
    ("tag", "found"),
    [
        pytest.param("manylinux_2_28_x86_64", None, id="newer"),
        pytest.param("manylinux_2_17_x86_64", None, id="the same"),
        pytest.param("manylinux2014_x86_64", None, id="old name"),
        pytest.param("linux_x86_64", "has the tag linux_x86_64, which public indexes reject", id="without a promise"),
        pytest.param(
            "manylinux_2_12_x86_64",
            "promises glibc 2.12, but needs glibc 2.17 (lib/libamdhip64.so.7: GLIBC_2.17)",
            id="older",
        ),
        pytest.param(
            "manylinux_2_28_x86_64.manylinux1_x86_64",
            "promises glibc 2.5, but needs glibc 2.17 (lib/libamdhip64.so.7: GLIBC_2.17)",
            id="older among several",
        ),
    ],
)
def test_a_tag_that_promises_too_much_compatibility_is_reported(tag: str, found: str | None) -> None:
    hip = msgspec.structs.replace(library("libamdhip64.so.7"), version_needs=(VersionNeed("libc.so.6", "GLIBC_2.17"),))
    told = warnings({HIP: hip}, options=PlanOptions(platform_tag=tag))
    core = [warning for warning in told if warning.subject.startswith("rocm_sdk_core-")]
    remedy = "Build without a platform tag, or with manylinux_2_17_x86_64."
    name = f"rocm_sdk_core-7.2.0-py3-none-{tag}.whl"
    assert core == ([PlanWarning("platform-tag", name, found, remedy)] if found else [])


@pytest.mark.parametrize("artifact", ["core-hip", "core-hip_lib_generic"])
def test_a_preference_for_an_existing_artifact_is_accepted(artifact: str) -> None:
    recipe = msgspec.structs.replace(load_recipe(), prefer=(Prefer("bin/**", artifact, "the newer one"),))
    assert warnings({}, recipe=recipe) == ()


def test_a_preference_for_a_missing_artifact_is_reported() -> None:
    recipe = msgspec.structs.replace(load_recipe(), prefer=(Prefer("bin/**", "core-hop", "the newer one"),))
    assert warnings({}, recipe=recipe) == (
        PlanWarning(
            "unknown-artifact",
            "[[prefer]] bin/**",
            "prefers the artifact core-hop, which doesn't exist",
            "Correct or remove the row.",
        ),
    )


def artifact_warnings(artifacts: tuple[str, ...], *entries: Entry) -> list[PlanWarning]:
    """Return the warnings about a recipe whose libraries take these artifacts."""
    recipe = load_recipe()
    libraries = recipe.packages["libraries"]
    take = (msgspec.structs.replace(libraries.take[0], artifacts=artifacts),)
    packages = {**recipe.packages, "libraries": msgspec.structs.replace(libraries, take=take)}
    recipe = msgspec.structs.replace(recipe, packages=packages)
    plan = make_plan(make_catalog(HIP, BLAS, *entries), recipe, make_facts(), PlanOptions())
    return [warning for warning in plan.warnings if warning.kind == "unknown-artifact"]


FIELD = "packages.libraries.take.artifacts"


def test_a_misspelled_artifact_in_a_package_is_reported_with_a_suggestion() -> None:
    (found,) = artifact_warnings(("blas", "sprase"), file_entry("lib/libsparse.so.1", "sparse_lib_generic"))
    assert (found.subject, found.found) == (FIELD, "lists the artifact sprase, which doesn't exist")
    assert found.remedy == "Did you mean sparse?"


def test_a_missing_artifact_is_reported_with_the_unlisted_artifacts() -> None:
    (found,) = artifact_warnings(("blas", "my-own"), file_entry("lib/libnew.so.1", "extra_lib_generic"))
    assert (found.subject, found.found) == (
        FIELD,
        "lists the artifact my-own, which doesn't exist; the recipe doesn't list the existing extra",
    )
    assert found.remedy == "Correct or remove the name."


@pytest.mark.parametrize("name", ["my-own", "fft"])
def test_an_artifact_that_exists_only_in_other_builds_is_accepted(name: str) -> None:
    assert artifact_warnings(("blas", name)) == []


def test_an_unknown_gpu_in_an_artifact_name_is_reported() -> None:
    catalog = make_catalog(HIP, BLAS, file_entry("lib/rocblas/library/x.co", "blas_lib_gfx90x42"))
    (found,) = make_plan(catalog, load_recipe(), make_facts(), PlanOptions()).warnings
    assert (found.kind, found.subject, found.found) == (
        "unknown-target",
        "blas_lib_gfx90x42",
        "is for gfx90x42, which isn't a known GPU target or family",
    )
    assert found.remedy.startswith("Rename the artifact if the name is misspelled. Similar names: gfx90")


def test_dangling_symlinks_are_reported_by_artifact() -> None:
    links = [link_entry("bin/gone", "nowhere"), link_entry("loop", "loop"), link_entry("lib/one", "librocblas.so.5")]
    catalog = make_catalog(HIP, BLAS, *links)
    facts = make_facts({HIP: library("libamdhip64.so.7"), BLAS: library("librocblas.so.5")})
    artifact = str(links[0].artifact)
    (found,) = make_plan(catalog, load_recipe(), facts, PlanOptions()).warnings
    assert (found.kind, found.subject, found.files) == ("broken-link", artifact, ("bin/gone", "loop"))
    assert found.found == (
        "bin/gone is left out, because it is a symlink to bin/nowhere, but no artifact contains it "
        "(and 1 more such symlink)"
    )


@pytest.mark.parametrize(
    ("paths", "subject", "found", "remedy"),
    [
        pytest.param(
            ["lib/libhipblaslt.dll.a"],
            "lib/libhipblaslt.dll.a",
            "has a name that only GNU linkers look for",
            "Make the build create hipblaslt.lib, which MSVC, clang-cl, and CMake look for.",
            id="instead",
        ),
        pytest.param(
            ["lib/libx.dll.a", "lib/x.lib"],
            "lib/libx.dll.a",
            "has a name that only GNU linkers look for, and is next to lib/x.lib",
            "Ignore this warning if both import libraries are for the same DLL.",
            id="beside",
        ),
        pytest.param(
            ["lib/x.dll.a", "bin/x.lib"],
            "lib/x.dll.a",
            "has a name that only GNU linkers look for",
            "Make the build create x.lib, which MSVC, clang-cl, and CMake look for.",
            id="another folder",
        ),
    ],
)
def test_import_libraries_of_gnu_linkers_are_reported(paths: list[str], subject: str, found: str, remedy: str) -> None:
    [warning] = import_libraries(paths)
    assert (warning.kind, warning.subject, warning.found, warning.remedy) == ("import-library", subject, found, remedy)


def test_import_libraries_of_msvc_are_accepted() -> None:
    assert list(import_libraries(["lib/amdhip64.lib", "lib/libz.a"])) == []


def test_binaries_that_no_target_machine_can_load_are_one_warning() -> None:
    facts = msgspec.structs.replace(make_facts(), foreign=("lib/python/t64.exe", "lib/python/w64.exe"))
    [warning] = foreign_binaries(facts)
    assert (warning.kind, warning.subject) == ("foreign-binary", "lib/python/t64.exe and 1 more")
    assert warning.found == "can't be loaded by Linux on the target machines of these packages; shipped as data"
    assert warning.files == ("lib/python/t64.exe", "lib/python/w64.exe")
    assert list(foreign_binaries(make_facts())) == []


MISSING_DLLS_HIP = file_entry("bin/amdhip64_7.dll", "core-hip_lib_generic")
MISSING_DLLS_BLAS = file_entry("bin/rocblas.dll", "blas_lib_generic")
TOOL = file_entry("bin/tool.exe", "blas_dev_generic")


def missing(*imports: str, delayed: tuple[str, ...] = (), system: tuple[str, ...] = ()) -> list[PlanWarning]:
    """Return the warnings about what a DLL of the libraries loads."""
    blas = read_pe(pe_file("rocblas.dll", *imports, delayed=delayed), name="rocblas.dll")
    images = {entry.source: blas for entry in (MISSING_DLLS_BLAS,) if entry.source}
    facts = msgspec.structs.replace(make_facts(), platform=Platform.WINDOWS, images=images)
    recipe = load_recipe()
    recipe = msgspec.structs.replace(recipe, audit=msgspec.structs.replace(recipe.audit, system_libraries=system))
    plan = make_plan(make_catalog(MISSING_DLLS_HIP, MISSING_DLLS_BLAS, TOOL), recipe, facts, PlanOptions())
    return [warning for warning in plan.warnings if warning.kind == "missing-library"]


@pytest.mark.parametrize(
    "name", ["AMDHIP64_7.dll", "KERNEL32.dll", "api-ms-win-crt-heap-l1-1-0.dll", "vcruntime140.dll"]
)
def test_dlls_from_packages_and_from_windows_are_found_regardless_of_case(name: str) -> None:
    assert missing(name) == []


@pytest.mark.parametrize("is_delayed", [False, True])
def test_a_dll_in_no_package_is_reported(*, is_delayed: bool) -> None:
    names = ("hipblaslt.dll",)
    [warning] = missing(delayed=names) if is_delayed else missing(*names)
    path = "_rocm_sdk_libraries/bin/rocblas.dll"
    assert (warning.subject, warning.files) == ("hipblaslt.dll", (path,))
    assert warning.found == f"needed by {path}, but neither a package nor Windows has it"


def test_a_debug_runtime_library_is_reported_as_such() -> None:
    [warning] = missing("VCRUNTIME140D.dll", "MSVCP140.dll")
    path = "_rocm_sdk_libraries/bin/rocblas.dll"
    assert (warning.subject, warning.files) == ("VCRUNTIME140D.dll", (path,))
    assert warning.found == f"needed by {path}, but only machines with Visual Studio have it"
    assert warning.remedy == "Build the file for release (/MD instead of /MDd)."


def test_the_recipe_may_list_dlls_that_systems_have() -> None:
    assert missing("vendor_1.dll", system=("Vendor_*.dll",)) == []
