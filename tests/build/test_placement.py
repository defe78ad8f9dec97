"""Tests of `rocwheel.build.placement`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.catalog import PrefixIndex
from rocwheel.build.placement import Placement, merge_entries, place_runtime, take_entries
from rocwheel.build.plan import Dropped
from rocwheel.build.recipe import Prefer, Take
from rocwheel.core.errors import ProblemsError
from tests.build.trees import X86_64, file_entry, library, link_entry, make_facts, program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocwheel.artifacts.catalog import Entry
    from rocwheel.binary.elf.facts import Elf


def test_identical_files_in_two_artifacts_are_merged() -> None:
    one, other = file_entry("lib/x.txt", "base_lib_generic"), file_entry("lib/x.txt", "blas_lib_generic")
    facts = make_facts(digests={one: b"same", other: b"same"})
    assert merge_entries("/src", [one, other], facts, ()) == {"lib/x.txt": one}


def test_the_error_about_different_files_at_one_path_names_both_artifacts() -> None:
    one, other = file_entry("lib/x.txt", "base_lib_generic"), file_entry("lib/x.txt", "blas_lib_generic")
    facts = make_facts(digests={one: b"one", other: b"other"})
    expected = (
        "lib/x.txt: differs between the artifacts base_lib_generic and blas_lib_generic. "
        "Remove one of the files, or add a [[prefer]] row (pattern, artifact, reason) to the recipe."
    )
    with pytest.raises(ProblemsError, match=re.escape(expected)):
        merge_entries("/src", [one, other], facts, ())


def test_all_conflicts_are_reported_together() -> None:
    claims = [file_entry(f"lib/{name}", f"{who}_lib_generic") for name in "ab" for who in ("base", "blas")]
    facts = make_facts(digests={claim: str(claim.artifact).encode() for claim in claims})
    with pytest.raises(ProblemsError) as caught:
        merge_entries("/src", claims, facts, ())
    assert [str(problem).partition(":")[0] for problem in caught.value.problems] == ["lib/a", "lib/b"]


def test_the_recipe_decides_which_artifact_wins() -> None:
    one, other = file_entry("lib/x.txt", "base_lib_generic"), file_entry("lib/x.txt", "blas_lib_generic")
    facts = make_facts(digests={one: b"one", other: b"other"})
    prefer = (Prefer("lib/*.txt", "blas", "the newer text"),)
    assert merge_entries("/src", [one, other], facts, prefer) == {"lib/x.txt": other}


def test_a_link_and_a_file_at_one_path_are_a_conflict() -> None:
    claims = [file_entry("lib/x", "base_lib_generic"), link_entry("lib/x", "y", "blas_lib_generic")]
    with pytest.raises(ProblemsError, match="lib/x: differs between"):
        merge_entries("/src", claims, make_facts(), ())


def test_links_with_the_same_target_are_merged() -> None:
    claims = [link_entry("lib/x", "y", "base_lib_generic"), link_entry("lib/x", "y", "blas_lib_generic")]
    assert merge_entries("/src", claims, make_facts(), ()) == {"lib/x": claims[0]}


def test_a_package_takes_the_files_that_match_its_rules() -> None:
    entries = [
        file_entry("bin/hipcc", "core-hip_run_generic"),
        file_entry("bin/rocprof-x", "core-hip_run_generic"),
        file_entry("include/hip.h", "core-hip_dev_generic"),
        file_entry("lib/libm.so", "math_lib_generic"),
    ]
    takes = (Take(artifacts=("core-hip",), components=("lib", "run"), exclude=("bin/rocprof-*",)),)
    assert list(take_entries({entry.path: entry for entry in entries}, takes)) == ["bin/hipcc"]


def test_a_star_takes_all_artifacts_except_the_excluded_artifacts() -> None:
    entries = [file_entry("a", "base_dev_generic"), file_entry("b", "rocprofiler-compute_dev_generic")]
    takes = (Take(artifacts=("*",), components=("dev",), exclude_artifacts=("rocprofiler-compute",)),)
    assert list(take_entries({entry.path: entry for entry in entries}, takes)) == ["a"]


def place(
    *entries: Entry,
    elves: Mapping[Entry, Elf] | None = None,
    selected: tuple[Entry, ...] | None = None,
    elsewhere: Mapping[str, str] | None = None,
    scripts: tuple[Entry, ...] = (),
) -> Placement:
    chosen = {entry.path: entry for entry in (entries if selected is None else selected)}
    facts = make_facts(elves or {}, scripts=scripts)
    return place_runtime(chosen, PrefixIndex(entries), facts, elsewhere or {})


def contents(placement: Placement) -> dict[str, str]:
    """Return the file of the artifacts that is shipped at each place."""
    return {path: entry.path for path, entry in placement.files.items()}


def test_a_library_is_shipped_only_under_its_soname() -> None:
    real = file_entry("lib/libx.so.1.2.3")
    links = link_entry("lib/libx.so.1", "libx.so.1.2.3"), link_entry("lib/libx.so", "libx.so.1")
    placement = place(real, *links, elves={real: library("libx.so.1")})
    assert contents(placement) == {"lib/libx.so.1": "lib/libx.so.1.2.3"}
    assert placement.other_names == {
        "lib/libx.so.1.2.3": "lib/libx.so.1",
        "lib/libx.so": "lib/libx.so.1",
    }


def test_a_library_without_links_is_still_shipped_under_its_soname() -> None:
    real = file_entry("lib/libx.so.1.2.3")
    assert contents(place(real, elves={real: library("libx.so.1")})) == {"lib/libx.so.1": "lib/libx.so.1.2.3"}


def test_a_library_without_a_soname_keeps_its_name() -> None:
    plugin = file_entry("lib/plugin.so")
    assert contents(place(plugin, elves={plugin: library(None)})) == {"lib/plugin.so": "lib/plugin.so"}


def test_the_library_that_the_soname_link_points_to_gets_the_soname() -> None:
    one, other = file_entry("lib/libx.so.1.2"), file_entry("lib/libx.so.1.3")
    link = link_entry("lib/libx.so.1", "libx.so.1.3")
    elves = {one: library("libx.so.1"), other: library("libx.so.1")}
    assert contents(place(one, other, link, elves=elves)) == {
        "lib/libx.so.1": "lib/libx.so.1.3",
        "lib/libx.so.1.2": "lib/libx.so.1.2",
    }


def test_two_libraries_that_claim_the_same_soname_are_a_conflict() -> None:
    one, other = file_entry("lib/libx.so.1.2"), file_entry("lib/libx.so.1.3", "blas_lib_generic")
    elves = {one: library("libx.so.1"), other: library("libx.so.1")}
    expected = (
        "lib/libx.so.1: differs between the artifacts base_lib_generic (lib/libx.so.1.2) "
        "and blas_lib_generic (lib/libx.so.1.3)"
    )
    with pytest.raises(ProblemsError, match=re.escape(expected)):
        place(one, other, elves=elves)


def test_a_library_link_in_another_folder_does_not_create_a_second_copy() -> None:
    real, link = file_entry("lib/libx.so.1"), link_entry("lib/llvm/lib/libx.so.1", "../../libx.so.1")
    placement = place(real, link, elves={real: library("libx.so.1")})
    assert contents(placement) == {"lib/libx.so.1": "lib/libx.so.1"}
    assert placement.other_names == {"lib/llvm/lib/libx.so.1": "lib/libx.so.1"}


def test_a_link_to_a_program_becomes_a_stub() -> None:
    clang, link = (
        file_entry("lib/llvm/bin/clang-15", mode=0o755),
        link_entry("bin/amdclang", "../lib/llvm/bin/clang-15"),
    )
    placement = place(clang, link, elves={clang: program()})
    stub = placement.stubs["bin/amdclang"]
    assert (stub.target, stub.machine) == ("../lib/llvm/bin/clang-15", X86_64)


def test_a_stub_points_directly_to_the_end_of_a_chain_of_links() -> None:
    clang = file_entry("bin/clang-15", mode=0o755)
    links = link_entry("bin/clang", "clang-15"), link_entry("bin/clang++", "clang")
    assert place(clang, *links, elves={clang: program()}).stubs["bin/clang++"].target == "clang-15"


def test_a_link_to_a_script_becomes_a_stub_that_runs_the_script_in_its_folder() -> None:
    script, link = file_entry("libexec/smi.py", mode=0o755), link_entry("bin/rocm-smi", "../libexec/smi.py")
    assert place(script, link, scripts=(script,)).stubs["bin/rocm-smi"].target == "../libexec/smi.py"


@pytest.mark.parametrize("mode", [0o644, 0o755], ids=["plain", "marked executable"])
def test_a_link_to_data_becomes_a_copy(mode: int) -> None:
    data, link = file_entry("share/a.txt", mode=mode), link_entry("share/b.txt", "a.txt")
    assert contents(place(data, link)) == {"share/a.txt": "share/a.txt", "share/b.txt": "share/a.txt"}


def test_a_stub_may_point_into_a_required_package() -> None:
    tool, link = file_entry("bin/tool", mode=0o755), link_entry("bin/alias", "tool")
    placement = place(
        tool, link, selected=(link,), scripts=(tool,), elsewhere={"bin/tool": "../_rocm_sdk_core/bin/tool"}
    )
    assert placement.stubs["bin/alias"].target == "../../_rocm_sdk_core/bin/tool"


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        (
            link_entry("llvm", "lib/llvm"),
            "a symlink to the folder lib/llvm, which wheels can't contain; only the devel package may contain it",
        ),
        (link_entry("gone", "nowhere"), "a symlink to nowhere, but no artifact contains it"),
        (link_entry("loop", "loop"), "a symlink that loops at loop"),
        (link_entry("out", "../../etc/passwd"), "a symlink that leaves the prefix at out"),
        (link_entry("tool2", "lib/llvm/tool"), "lib/llvm/tool is not in any package that this package requires"),
    ],
    ids=["directory", "dangling", "loop", "outside", "other package"],
)
def test_a_link_that_cannot_be_shipped_is_dropped_with_a_reason(link: Entry, reason: str) -> None:
    tool = file_entry("lib/llvm/tool", mode=0o755)
    placement = place(tool, link, selected=(link,), scripts=(tool,))
    assert placement.dropped == (Dropped(link.path, "base_lib_generic", reason),)
    assert not placement.files
    assert not placement.stubs
