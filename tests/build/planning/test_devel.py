"""Tests of `rocwheel.build.planning.devel`."""

from __future__ import annotations

import json
import time

import pytest

from rocwheel.build.plan import FileMember, Plan, TarEntry, TarMember
from rocwheel.build.planning.devel import part_links, render_links
from rocwheel.build.planning.make_plan import make_plan
from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.recipe import load_recipe
from tests.build.trees import file_entry, library, link_entry, make_catalog, make_facts, program

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


def test_a_file_from_a_runtime_package_is_a_link() -> None:
    assert entry("lib/llvm/bin/clang-20").link == "../../../../_rocm_sdk_core/lib/llvm/bin/clang-20"


def test_the_soname_is_a_link_to_the_library() -> None:
    assert entry("lib/libamdhip64.so.7").link == "../../_rocm_sdk_core/lib/libamdhip64.so.7"


def test_other_names_of_a_library_are_links_to_its_soname() -> None:
    assert entry("lib/libamdhip64.so").link == "libamdhip64.so.7"
    assert entry("lib/libamdhip64.so.7.2").link == "libamdhip64.so.7"


def test_links_to_programs_and_folders_are_kept() -> None:
    assert entry("bin/amdclang").link == "../lib/llvm/bin/clang-20"
    assert entry("llvm").link == "lib/llvm"


def test_a_file_needed_only_for_builds_is_included() -> None:
    found = entry("lib/libstatic.a")
    assert found.link is None
    assert found.file is not None
    assert found.file.artifact == "core-hip_dev_generic"


def test_a_library_in_no_runtime_package_gets_a_run_path_in_the_devel_tree() -> None:
    found = entry("lib/librocalution.so.1").file
    assert found is not None
    assert found.run_path is not None
    assert found.run_path.value == "$ORIGIN"


def test_dangling_links_are_left_out_and_reported() -> None:
    assert all(entry.path != "_rocm_sdk_devel/share/gone" for entry in tar().entries)
    reasons = [row.reason for row in plan().dropped if row.path == "share/gone"]
    assert reasons == ["a symlink to share/nowhere, but no artifact contains it"]


def test_tests_are_left_out() -> None:
    assert all("test/" not in entry.path for entry in tar().entries)


def test_members_are_sorted() -> None:
    names = [entry.path for entry in tar().entries]
    assert names == sorted(names)


def test_the_file_suffix_indicates_the_compression() -> None:
    names = [tar(PlanOptions(devel_compression=way)).path for way in ("none", "xz", "zst")]
    assert names == [
        "rocm_sdk_devel/_devel.tar",
        "rocm_sdk_devel/_devel.tar.xz",
        "rocm_sdk_devel/_devel.tar.zst",
    ]


def test_zstd_compression_adds_no_requirements() -> None:
    made = plan(PlanOptions(devel_compression="zst"))
    wheel = next(wheel for wheel in made.wheels if wheel.package == "devel")
    plain = next(wheel for wheel in plan().wheels if wheel.package == "devel")
    assert wheel.metadata.requires == plain.metadata.requires


def file(path: str) -> TarEntry:
    source = file_entry(path).source
    assert source is not None
    return TarEntry(path, 0o644, file=FileMember(path, 0o644, source, "base_dev_generic", path))


def link(path: str, text: str) -> TarEntry:
    return TarEntry(path, 0o777, link=text)


def test_files_stay_in_the_archive_and_links_become_normalized_paths() -> None:
    entries = [file("_devel/include/a.h"), link("_devel/bin/a.dll", "../../_core/bin/a.dll")]
    parted = part_links("_devel", entries, ["_core/bin/a.dll"])
    assert [entry.path for entry in parted.files] == ["_devel/include/a.h"]
    assert (parted.links, parted.lost) == ({"bin/a.dll": "_core/bin/a.dll"}, ())


def test_links_to_links_and_to_devel_files_are_resolved_to_files() -> None:
    entries = [file("_devel/a"), link("_devel/b", "a"), link("_devel/c", "b"), link("_devel/d/e", "../../_core/e")]
    entries.append(link("_devel/f", "d/e"))
    assert part_links("_devel", entries, ["_core/e"]).links == {
        "b": "_devel/a",
        "c": "_devel/a",
        "d/e": "_core/e",
        "f": "_core/e",
    }


def test_a_link_to_a_folder_becomes_links_to_its_files() -> None:
    entries = [file("_devel/lib/a.h"), link("_devel/lib/b.dll", "../../_core/b.dll"), link("_devel/lib64", "lib")]
    assert part_links("_devel", entries, ["_core/b.dll"]).links == {
        "lib/b.dll": "_core/b.dll",
        "lib64/a.h": "_devel/lib/a.h",
        "lib64/b.dll": "_core/b.dll",
    }


@pytest.mark.parametrize(
    ("entries", "links"),
    [
        pytest.param(
            [file("r/d/f"), file("r/b/g"), link("r/b/c", "../d"), link("r/a", "b")],
            {"a/c/f": "r/d/f", "a/g": "r/b/g", "b/c/f": "r/d/f"},
            id="a folder link in a linked folder",
        ),
        pytest.param(
            [file("r/b/g"), link("r/a", "b"), link("r/x", "a/g")],
            {"a/g": "r/b/g", "x": "r/b/g"},
            id="through a folder link",
        ),
        pytest.param(
            [link("r/a", "../core/bin"), link("r/z", "a/x.exe")],
            {"a/x.exe": "core/bin/x.exe", "z": "core/bin/x.exe"},
            id="a folder of another package",
        ),
    ],
)
def test_links_to_and_through_folders_resolve_only_to_files(entries: list[TarEntry], links: dict[str, str]) -> None:
    parted = part_links("r", entries, ["core/bin/x.exe"])
    assert (parted.links, parted.lost) == (links, ())


@pytest.mark.parametrize(
    ("entries", "lost"),
    [
        ([link("r/a", "b"), link("r/b", "a")], [("a", "a", "that loops at r/a")]),
        ([file("r/a/f"), link("r/a/up", "..")], [("a/up", "a/up", "to r, a folder that contains the symlink")]),
        ([file("r/f"), link("r/top", "../..")], [("top", "top", "that leaves site-packages at r/top")]),
        ([file("r/f"), link("r/etc", "/etc/f")], [("etc", "etc", "that leaves site-packages at r/etc")]),
        ([file("r/f"), link("r/x", "gone")], [("x", "x", "to r/gone, where there is no file")]),
        ([file("r/f"), link("r/x", "f/g")], [("x", "x", "to a path below r/f, which is not a folder")]),
    ],
)
def test_links_that_do_not_end_at_files_are_reported(entries: list[TarEntry], lost: list[tuple[str, str, str]]) -> None:
    parted = part_links("r", entries)
    assert parted.links == {}
    assert [(one.path, one.link, one.reason) for one in parted.lost][:1] == lost


def test_folders_that_link_to_each_other_do_not_cause_an_endless_loop() -> None:
    entries = [file("r/a/f"), file("r/b/g"), link("r/a/x", "../b"), link("r/b/y", "../a")]
    parted = part_links("r", entries)
    assert parted.links == {"a/x/g": "r/b/g", "b/y/f": "r/a/f"}
    assert [(one.path, one.link) for one in parted.lost] == [("a/x/y", "b/y"), ("b/y/x", "a/x")]


def test_the_manifest_is_json() -> None:
    assert json.loads(render_links({"bin/a.dll": "_core/bin/a.dll"})) == {"links": {"bin/a.dll": "_core/bin/a.dll"}}


def test_deeply_nested_folders_are_walked_once() -> None:
    # Following each path from the top took 13 seconds.
    below = "/".join(["d"] * 1600)
    begun = time.process_time()
    parted = part_links("r", [file(f"r/{below}/f"), link("r/x", "d")])
    assert time.process_time() - begun < 3
    assert parted.links == {f"x{below[1:]}/f": f"r/{below}/f"}


def test_a_link_to_a_folder_that_contains_the_link_is_lost() -> None:
    entries = [file("r/a/b/f"), link("r/a/b/there", "../../c"), link("r/c/back", "../a")]
    parted = part_links("r", entries)
    assert parted.links == {"c/back/b/f": "r/a/b/f"}
    assert [(one.path, one.link, one.reason) for one in parted.lost] == [
        ("a/b/there/back", "c/back", "to r/a, a folder that contains the symlink"),
        ("c/back/b/there", "a/b/there", "to r/c, a folder that contains the symlink"),
    ]
