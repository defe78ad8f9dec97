"""The devel tar: links wherever a runtime package has the file, files for all the rest."""

from __future__ import annotations

from rocwheel.packages.plan import Plan, TarEntry, TarMember
from rocwheel.packages.planning.make_plan import make_plan
from rocwheel.packages.planning.options import PlanOptions
from rocwheel.packages.recipe.load import load_recipe
from tests.packages.trees import file_entry, library, link_entry, make_catalog, make_facts, program

HIP = file_entry("lib/libamdhip64.so.7.2", "core-hip_lib_generic")
CLANG = file_entry("lib/llvm/bin/clang-20", "amd-llvm_run_generic", mode=0o755)
ROCALUTION = file_entry("lib/librocalution.so.1", "rocalution_lib_generic")
ENTRIES = (
    HIP,
    link_entry("lib/libamdhip64.so.7", "libamdhip64.so.7.2", "core-hip_lib_generic"),
    link_entry("lib/libamdhip64.so", "libamdhip64.so.7", "core-hip_dev_generic"),
    CLANG,
    link_entry("bin/amdclang", "../lib/llvm/bin/clang-20", "amd-llvm_run_generic"),
    link_entry("llvm", "lib/llvm", "base_run_generic"),
    link_entry("share/gone", "nowhere", "base_dev_generic"),
    file_entry("lib/libstatic.a", "core-hip_dev_generic"),
    file_entry("lib/librocblas.so.5", "blas_lib_generic"),
    ROCALUTION,
    file_entry("test/unit", "blas_test_generic"),
)
FACTS = make_facts(
    {
        HIP: library("libamdhip64.so.7"),
        CLANG: program(),
        ROCALUTION: library("librocalution.so.1", "librocblas.so.5", runpath="$ORIGIN:$ORIGIN/../lib64"),
    }
)


def plan(options: PlanOptions | None = None) -> Plan:
    return make_plan(make_catalog(*ENTRIES), load_recipe(), FACTS, options or PlanOptions())


def tar(options: PlanOptions | None = None) -> TarMember:
    wheel = next(wheel for wheel in plan(options).wheels if wheel.package == "devel")
    return next(member for member in wheel.members if isinstance(member, TarMember))


def entry(path: str) -> TarEntry:
    return next(entry for entry in tar().entries if entry.path == f"_rocm_sdk_devel/{path}")


def test_a_file_that_a_runtime_package_ships_is_a_link_to_it() -> None:
    assert entry("lib/llvm/bin/clang-20").link == "../../../../_rocm_sdk_core/lib/llvm/bin/clang-20"


def test_the_soname_is_a_link_to_the_library() -> None:
    assert entry("lib/libamdhip64.so.7").link == "../../_rocm_sdk_core/lib/libamdhip64.so.7"


def test_other_names_of_a_library_are_links_to_its_soname() -> None:
    assert entry("lib/libamdhip64.so").link == "libamdhip64.so.7"
    assert entry("lib/libamdhip64.so.7.2").link == "libamdhip64.so.7"


def test_links_to_programs_and_folders_stay_as_they_are() -> None:
    assert entry("bin/amdclang").link == "../lib/llvm/bin/clang-20"
    assert entry("llvm").link == "lib/llvm"


def test_what_only_builds_need_is_a_file() -> None:
    found = entry("lib/libstatic.a")
    assert found.link is None
    assert found.file is not None
    assert found.file.artifact == "core-hip_dev_generic"


def test_a_library_that_no_runtime_package_ships_finds_the_others_through_the_tree_itself() -> None:
    found = entry("lib/librocalution.so.1").file
    assert found is not None
    assert found.run_path is not None
    assert found.run_path.value == "$ORIGIN"


def test_dangling_links_are_left_out_and_reported() -> None:
    assert all(entry.path != "_rocm_sdk_devel/share/gone" for entry in tar().entries)
    reasons = [row.reason for row in plan().dropped if row.path == "share/gone"]
    assert reasons == ["a symlink to share/nowhere, but no artifact contains it"]


def test_tests_stay_out() -> None:
    assert all("test/" not in entry.path for entry in tar().entries)


def test_members_are_sorted() -> None:
    names = [entry.path for entry in tar().entries]
    assert names == sorted(names)


def test_the_suffix_names_the_compression() -> None:
    names = [tar(PlanOptions(devel_compression=way)).path for way in ("none", "xz", "zst")]
    assert names == [
        "rocm_sdk_devel/_devel.tar",
        "rocm_sdk_devel/_devel.tar.xz",
        "rocm_sdk_devel/_devel.tar.zst",
    ]


def test_zstd_asks_for_nothing_that_an_index_of_this_set_lacks() -> None:
    made = plan(PlanOptions(devel_compression="zst"))
    wheel = next(wheel for wheel in made.wheels if wheel.package == "devel")
    plain = next(wheel for wheel in plan().wheels if wheel.package == "devel")
    assert wheel.metadata.requires == plain.metadata.requires
