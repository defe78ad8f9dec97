"""Run paths: the shortest list that finds a file's libraries across sibling packages."""

from __future__ import annotations

import pytest

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.linking.entries import goes_back
from rocwheel.linking.run_path_choice import (
    Keeping,
    LibraryPlaces,
    SetRunpath,
    library_places,
    origin_relative,
    run_path_edit,
)
from tests.packages.trees import library

CORE, SYSDEPS, LIBRARIES = "_rocm_sdk_core/lib", "_rocm_sdk_core/lib/rocm_sysdeps/lib", "_rocm_sdk_libraries/lib"
SEARCH = (LIBRARIES, CORE, SYSDEPS)
PLACES = LibraryPlaces(
    {
        "libamdhip64.so.7": frozenset({CORE}),
        "librocsparse.so.1": frozenset({LIBRARIES}),
        "libelf.so.1": frozenset({SYSDEPS}),
    },
    frozenset({CORE, SYSDEPS, LIBRARIES, "_rocm_sdk_core/bin"}),
)


@pytest.mark.parametrize(
    ("folder", "origin", "expected"),
    [
        ("_rocm_sdk_core/lib", "_rocm_sdk_core/lib", "$ORIGIN"),
        ("_rocm_sdk_core/lib", "_rocm_sdk_core/bin", "$ORIGIN/../lib"),
        ("_rocm_sdk_core/lib", "_rocm_sdk_libraries/lib", "$ORIGIN/../../_rocm_sdk_core/lib"),
        ("_rocm_sdk_core/lib/llvm/lib", "_rocm_sdk_core/lib", "$ORIGIN/llvm/lib"),
        ("_rocm_sdk_core/lib", "", "$ORIGIN/_rocm_sdk_core/lib"),
        ("", "demo", "$ORIGIN/.."),
        ("", "", "$ORIGIN"),
    ],
    ids=["own folder", "sibling folder", "sibling package", "below", "from the root", "to the root", "at the root"],
)
def test_a_place_is_spelled_relative_to_the_file(folder: str, origin: str, expected: str) -> None:
    assert origin_relative(folder, origin) == expected


@pytest.mark.parametrize("working_folder", ["/", "/usr"])
def test_the_working_folder_does_not_count(working_folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(working_folder)
    assert origin_relative("../../../lib64", "../../../bin") == "$ORIGIN/../lib64"
    assert origin_relative("../../../lib64", "demo") == "$ORIGIN/../../../../lib64"


def test_a_file_gets_only_the_folders_that_hold_what_it_needs() -> None:
    elf = library("libhipsparse.so.1", "librocsparse.so.1", "libamdhip64.so.7", "libc.so.6")
    edit = run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RPATH)
    assert edit == SetRunpath("$ORIGIN:$ORIGIN/../../_rocm_sdk_core/lib", RunpathTag.RPATH)


def test_a_file_that_opens_libraries_by_name_gets_every_folder_of_the_search() -> None:
    elf = library("libamdhip64.so.7", "libc.so.6", imports_dlopen=True)
    edit = run_path_edit(elf, CORE, (CORE, SYSDEPS), PLACES, RunpathTag.RPATH)
    assert edit == SetRunpath("$ORIGIN:$ORIGIN/rocm_sysdeps/lib", RunpathTag.RPATH)


def test_a_file_that_needs_nothing_of_the_packages_is_left_alone() -> None:
    elf = library("libmath.so.1", "libm.so.6", "libc.so.6")
    assert run_path_edit(elf, CORE, SEARCH, PLACES, RunpathTag.RPATH) is None


def test_a_run_path_that_serves_is_left_alone_even_when_it_is_longer_than_needed() -> None:
    elf = library("libhipsparse.so.1", "librocsparse.so.1", rpath="$ORIGIN:$ORIGIN/../../_rocm_sdk_core/lib")
    assert run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RPATH) is None


def test_a_good_list_under_the_other_tag_moves_to_the_wanted_one() -> None:
    elf = library("libhipsparse.so.1", "librocsparse.so.1", runpath="$ORIGIN")
    assert run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RPATH) == SetRunpath("$ORIGIN", RunpathTag.RPATH)


@pytest.mark.parametrize(
    "bad",
    ["/opt/rocm/lib", "/build/stage/lib", "$ORIGIN/../nowhere", "lib", "$ORIGIN:$ORIGIN", "", "$LIB"],
    ids=["absolute", "build folder", "does not exist", "relative", "twice", "empty entry", "other token"],
)
def test_entries_that_lead_elsewhere_go(bad: str) -> None:
    elf = library("libhipsparse.so.1", "librocsparse.so.1", rpath=f"{bad}:$ORIGIN")
    edit = run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RPATH)
    assert edit == SetRunpath("$ORIGIN", RunpathTag.RPATH)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("$ORIGIN/nope/../lib", True),
        ("$ORIGIN/nope/./../lib", True),
        ("$ORIGIN/../nope/..", True),
        ("$ORIGIN/../../lib", False),
        ("$ORIGIN/./../lib", False),
        ("${ORIGIN}/../a/b", False),
        ("$ORIGIN/a..b/c", False),
    ],
)
def test_an_entry_that_goes_back_behind_a_name_is_told(entry: str, expected: bool) -> None:
    assert goes_back(entry) is expected


def test_an_entry_that_goes_back_behind_a_name_is_spelled_anew() -> None:
    elf = library("libhipsparse.so.1", "librocsparse.so.1", rpath="$ORIGIN/nope/..")
    edit = run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RPATH)
    assert edit == SetRunpath("$ORIGIN", RunpathTag.RPATH)


def test_a_useless_run_path_is_removed() -> None:
    elf = library("libmath.so.1", "libm.so.6", rpath="/opt/rocm/lib")
    assert run_path_edit(elf, CORE, SEARCH, PLACES, RunpathTag.RPATH) == SetRunpath("", RunpathTag.RPATH)


def test_entries_of_the_file_that_lead_into_the_packages_stay_first() -> None:
    elf = library("libx.so", rpath="${ORIGIN}/../lib/rocm_sysdeps/lib:/opt/rocm/lib", imports_dlopen=True)
    edit = run_path_edit(elf, "_rocm_sdk_core/bin", (CORE, SYSDEPS), PLACES, RunpathTag.RPATH)
    assert edit == SetRunpath("$ORIGIN/../lib/rocm_sysdeps/lib:$ORIGIN/../lib", RunpathTag.RPATH)


def test_the_folder_that_the_recipe_searches_first_wins() -> None:
    places = LibraryPlaces({"libz.so.1": frozenset({CORE, SYSDEPS})}, frozenset({CORE, SYSDEPS}))
    edit = run_path_edit(library("liba.so", "libz.so.1"), CORE, (SYSDEPS, CORE), places, RunpathTag.RUNPATH)
    assert edit == SetRunpath("$ORIGIN/rocm_sysdeps/lib", RunpathTag.RUNPATH)


def test_a_needed_name_is_looked_for_as_a_file_name() -> None:
    places = library_places(["m/lib/libx.so.1", "m/lib/liby.so"])
    assert places.providers == {"libx.so.1": frozenset({"m/lib"}), "liby.so": frozenset({"m/lib"})}
    assert places.folders == frozenset({"m/lib"})


def test_run_paths_name_no_folder_for_some_processors_alone() -> None:
    places = library_places(["m/lib/libx.so.1", "m/lib/glibc-hwcaps/x86-64-v3/libx.so.1"])
    assert places.providers == {"libx.so.1": frozenset({"m/lib"})}


@pytest.mark.parametrize(
    ("entry", "kept"),
    [
        ("$ORIGIN/../../nvidia/cublas/lib", True),
        ("$ORIGIN/../nowhere", False),
        ("$ORIGIN/../../../lib", False),
        ("$ORIGIN/../..", False),
        ("/opt/rocm/lib", False),
        ("$ORIGIN/../../_solib_local/_U_S_Srocm", False),
    ],
    ids=[
        "other package",
        "absent folder of a package",
        "outside of site-packages",
        "site-packages",
        "absolute",
        "build folder",
    ],
)
def test_entries_into_packages_that_are_not_known_can_be_kept(entry: str, kept: bool) -> None:
    elf = library("libhipsparse.so.1", "librocsparse.so.1", rpath=f"{entry}:/opt/lib:$ORIGIN")
    edit = run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RPATH, Keeping(beyond=True))
    assert edit == SetRunpath(f"{entry}:$ORIGIN" if kept else "$ORIGIN", RunpathTag.RPATH)


@pytest.mark.parametrize(
    ("top", "stays"),
    [
        ("other_package/lib", True),
        ("external_links/lib", True),
        ("external/lib", False),
        ("_solib_local/_U_S", False),
        ("bazel-out/lib", False),
        ("ext.runfiles/lib", False),
    ],
)
def test_build_folders_are_no_packages_beyond(top: str, stays: bool) -> None:
    elf = library("libmath.so.1", "libnowhere.so.1", runpath=f"$ORIGIN/../../{top}")
    edit = run_path_edit(elf, CORE, SEARCH, PLACES, RunpathTag.RUNPATH, Keeping(beyond=True))
    assert edit == (None if stays else SetRunpath("", RunpathTag.RUNPATH))


@pytest.mark.parametrize(
    ("run_path", "expected"),
    [("$ORIGIN:/opt/lib", None), ("/opt/lib:$ORIGIN", "$ORIGIN:/opt/lib"), ("/a:$ORIGIN:/b", "$ORIGIN:/a:/b")],
    ids=["last", "first", "around"],
)
def test_folders_of_the_host_that_stay_become_the_last_ones(run_path: str, expected: str | None) -> None:
    elf = library("libhipsparse.so.1", "librocsparse.so.1", runpath=run_path)
    edit = run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RUNPATH, Keeping(hosts=True))
    assert edit == (SetRunpath(expected, RunpathTag.RUNPATH) if expected else None)


@pytest.mark.parametrize("entry", ["$ORIGIN/nope/..", "$ORIGIN/../lib/nope/../"])
def test_a_folder_that_has_to_exist_on_the_way_makes_an_entry_wrong(entry: str) -> None:
    elf = library("libhipsparse.so.1", "librocsparse.so.1", runpath=entry)
    edit = run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RUNPATH)
    assert edit == SetRunpath("$ORIGIN", RunpathTag.RUNPATH)
