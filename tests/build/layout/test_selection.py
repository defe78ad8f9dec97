"""Tests of `rocwheel.build.layout.selection`."""

from __future__ import annotations

import re

import pytest

from rocwheel.build.layout.selection import merge_entries, take_entries
from rocwheel.build.recipe import Prefer, Take
from rocwheel.core.errors import ProblemsError
from tests.build.trees import file_entry, link_entry, make_facts


def test_equal_files_of_two_artifacts_are_one() -> None:
    one, other = file_entry("lib/x.txt", "base_lib_generic"), file_entry("lib/x.txt", "blas_lib_generic")
    facts = make_facts(digests={one: b"same", other: b"same"})
    assert merge_entries("/src", [one, other], facts, ()) == {"lib/x.txt": one}


def test_different_files_for_one_path_name_both_artifacts() -> None:
    one, other = file_entry("lib/x.txt", "base_lib_generic"), file_entry("lib/x.txt", "blas_lib_generic")
    facts = make_facts(digests={one: b"one", other: b"other"})
    expected = (
        "lib/x.txt: differs between the artifacts base_lib_generic and blas_lib_generic. "
        "Remove one, or say in the recipe which wins ([[prefer]] with pattern, artifact and reason)."
    )
    with pytest.raises(ProblemsError, match=re.escape(expected)):
        merge_entries("/src", [one, other], facts, ())


def test_every_conflict_is_reported_at_once() -> None:
    claims = [file_entry(f"lib/{name}", f"{who}_lib_generic") for name in "ab" for who in ("base", "blas")]
    facts = make_facts(digests={claim: str(claim.artifact).encode() for claim in claims})
    with pytest.raises(ProblemsError) as caught:
        merge_entries("/src", claims, facts, ())
    assert [problem.path for problem in caught.value.problems] == ["lib/a", "lib/b"]  # type: ignore[attr-defined]


def test_the_recipe_says_which_artifact_wins() -> None:
    one, other = file_entry("lib/x.txt", "base_lib_generic"), file_entry("lib/x.txt", "blas_lib_generic")
    facts = make_facts(digests={one: b"one", other: b"other"})
    prefer = (Prefer("lib/*.txt", "blas", "the newer text"),)
    assert merge_entries("/src", [one, other], facts, prefer) == {"lib/x.txt": other}


def test_a_link_and_a_file_for_one_path_are_a_conflict() -> None:
    claims = [file_entry("lib/x", "base_lib_generic"), link_entry("lib/x", "y", "blas_lib_generic")]
    with pytest.raises(ProblemsError, match="lib/x: differs between"):
        merge_entries("/src", claims, make_facts(), ())


def test_links_with_one_text_are_one() -> None:
    claims = [link_entry("lib/x", "y", "base_lib_generic"), link_entry("lib/x", "y", "blas_lib_generic")]
    assert merge_entries("/src", claims, make_facts(), ()) == {"lib/x": claims[0]}


def test_a_package_takes_what_its_rules_name() -> None:
    entries = [
        file_entry("bin/hipcc", "core-hip_run_generic"),
        file_entry("bin/rocprof-x", "core-hip_run_generic"),
        file_entry("include/hip.h", "core-hip_dev_generic"),
        file_entry("lib/libm.so", "math_lib_generic"),
    ]
    takes = (Take(artifacts=("core-hip",), components=("lib", "run"), exclude=("bin/rocprof-*",)),)
    assert list(take_entries({entry.path: entry for entry in entries}, takes)) == ["bin/hipcc"]


def test_a_star_takes_every_artifact_but_the_excluded() -> None:
    entries = [file_entry("a", "base_dev_generic"), file_entry("b", "rocprofiler-compute_dev_generic")]
    takes = (Take(artifacts=("*",), components=("dev",), exclude_artifacts=("rocprofiler-compute",)),)
    assert list(take_entries({entry.path: entry for entry in entries}, takes)) == ["a"]
