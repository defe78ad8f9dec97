"""Tests of `rocwheel.environment.run_path_choice`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.environment.run_path_choice import (
    KeptEntries,
    LibraryPlaces,
    SetRunpath,
    choose_folders,
    fewest_folders,
    library_places,
    origin_relative,
    run_path_edit,
)
from rocwheel.environment.run_path_entries import goes_back
from tests.build.trees import library

CORE, SYSDEPS, LIBRARIES = "_rocm_sdk_core/lib", "_rocm_sdk_core/lib/rocm_sysdeps/lib", "_rocm_sdk_libraries/lib"
SEARCH = (LIBRARIES, CORE, SYSDEPS)
PLACES = LibraryPlaces(
    {
        "libamdhip64.so.7": (CORE,),
        "librocsparse.so.1": (LIBRARIES,),
        "libelf.so.1": (SYSDEPS,),
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
def test_a_folder_is_spelled_relative_to_the_file(folder: str, origin: str, expected: str) -> None:
    assert origin_relative(folder, origin) == expected


@pytest.mark.parametrize("working_folder", ["/", "/usr"])
def test_the_current_directory_has_no_effect(working_folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(working_folder)
    assert origin_relative("../../../lib64", "../../../bin") == "$ORIGIN/../lib64"
    assert origin_relative("../../../lib64", "demo") == "$ORIGIN/../../../../lib64"


def test_a_file_gets_only_the_folders_of_the_libraries_it_needs() -> None:
    elf = library("libhipsparse.so.1", "librocsparse.so.1", "libamdhip64.so.7", "libc.so.6")
    edit = run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RPATH)
    assert edit == SetRunpath("$ORIGIN:$ORIGIN/../../_rocm_sdk_core/lib", RunpathTag.RPATH)


def test_a_file_that_opens_libraries_by_name_gets_every_search_folder() -> None:
    elf = library("libamdhip64.so.7", "libc.so.6", imports_dlopen=True)
    edit = run_path_edit(elf, CORE, (CORE, SYSDEPS), PLACES, RunpathTag.RPATH)
    assert edit == SetRunpath("$ORIGIN:$ORIGIN/rocm_sysdeps/lib", RunpathTag.RPATH)


@pytest.mark.parametrize(
    ("run_path", "expected"),
    [("$ORIGIN", f"$ORIGIN:$ORIGIN/../../{CORE}"), (f"$ORIGIN:$ORIGIN/../../{CORE}", None)],
    ids=["no way to it yet", "right already"],
)
def test_declared_opened_libraries_count_like_needed_libraries(run_path: str, expected: str | None) -> None:
    elf = library("libhipsparse.so.1", "librocsparse.so.1", runpath=run_path)
    edit = run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RUNPATH, opened=("libamdhip64.so.7",))
    assert edit == (SetRunpath(expected, RunpathTag.RUNPATH) if expected else None)


def test_a_file_that_needs_no_packaged_library_is_unchanged() -> None:
    elf = library("libmath.so.1", "libm.so.6", "libc.so.6")
    assert run_path_edit(elf, CORE, SEARCH, PLACES, RunpathTag.RPATH) is None


def test_a_working_run_path_is_unchanged_even_if_longer_than_needed() -> None:
    elf = library("libhipsparse.so.1", "librocsparse.so.1", rpath="$ORIGIN:$ORIGIN/../../_rocm_sdk_core/lib")
    assert run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RPATH) is None


def test_a_correct_run_path_under_the_other_tag_moves_to_the_wanted_tag() -> None:
    elf = library("libhipsparse.so.1", "librocsparse.so.1", runpath="$ORIGIN")
    assert run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RPATH) == SetRunpath("$ORIGIN", RunpathTag.RPATH)


@pytest.mark.parametrize(
    "bad",
    ["/opt/rocm/lib", "/build/stage/lib", "$ORIGIN/../nowhere", "lib", "$ORIGIN:$ORIGIN", "", "$LIB"],
    ids=["absolute", "build folder", "doesn't exist", "relative", "twice", "empty entry", "other token"],
)
def test_entries_that_point_elsewhere_are_removed(bad: str) -> None:
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
def test_goes_back_detects_entries_with_dot_dot_after_a_name(entry: str, expected: bool) -> None:
    assert goes_back(entry) is expected


def test_an_entry_with_dot_dot_after_a_name_is_normalized() -> None:
    elf = library("libhipsparse.so.1", "librocsparse.so.1", rpath="$ORIGIN/nope/..")
    edit = run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RPATH)
    assert edit == SetRunpath("$ORIGIN", RunpathTag.RPATH)


def test_a_useless_run_path_is_removed() -> None:
    elf = library("libmath.so.1", "libm.so.6", rpath="/opt/rocm/lib")
    assert run_path_edit(elf, CORE, SEARCH, PLACES, RunpathTag.RPATH) == SetRunpath("", RunpathTag.RPATH)


def test_existing_entries_that_point_into_the_packages_stay_first() -> None:
    elf = library("libx.so", rpath="${ORIGIN}/../lib/rocm_sysdeps/lib:/opt/rocm/lib", imports_dlopen=True)
    edit = run_path_edit(elf, "_rocm_sdk_core/bin", (CORE, SYSDEPS), PLACES, RunpathTag.RPATH)
    assert edit == SetRunpath("$ORIGIN/../lib/rocm_sysdeps/lib:$ORIGIN/../lib", RunpathTag.RPATH)


def test_the_first_search_folder_in_the_recipe_wins() -> None:
    places = LibraryPlaces({"libz.so.1": (CORE, SYSDEPS)}, frozenset({CORE, SYSDEPS}))
    edit = run_path_edit(library("liba.so", "libz.so.1"), CORE, (SYSDEPS, CORE), places, RunpathTag.RUNPATH)
    assert edit == SetRunpath("$ORIGIN/rocm_sysdeps/lib", RunpathTag.RUNPATH)


def test_needed_names_are_looked_up_as_file_names() -> None:
    places = library_places(["m/lib/libx.so.1", "m/lib/liby.so"])
    assert places.providers == {"libx.so.1": ("m/lib",), "liby.so": ("m/lib",)}
    assert places.folders == frozenset({"m/lib"})


def test_run_paths_contain_no_processor_specific_folders() -> None:
    places = library_places(["m/lib/libx.so.1", "m/lib/glibc-hwcaps/x86-64-v3/libx.so.1"])
    assert places.providers == {"libx.so.1": ("m/lib",)}


def test_a_kept_folder_that_no_package_has_stays_in_position() -> None:
    elf = library("libhipsparse.so.1", "librocsparse.so.1", rpath="$ORIGIN/../../nvidia/cublas/lib:/opt/lib:$ORIGIN")
    kept = KeptEntries(frozenset({"nvidia/cublas/lib"}))
    edit = run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RPATH, kept)
    assert edit == SetRunpath("$ORIGIN/../../nvidia/cublas/lib:$ORIGIN", RunpathTag.RPATH)


def test_a_run_path_with_only_kept_folders_is_correct() -> None:
    elf = library("libmath.so.1", "libnowhere.so.1", runpath="$ORIGIN/../../other/lib")
    kept = KeptEntries(frozenset({"other/lib"}))
    assert run_path_edit(elf, CORE, SEARCH, PLACES, RunpathTag.RUNPATH, kept) is None


@pytest.mark.parametrize(
    ("run_path", "expected"),
    [
        ("/opt/lib:$ORIGIN", None),
        ("/opt/lib:/build:$ORIGIN", "/opt/lib:$ORIGIN"),
        ("/opt/lib:$ORIGIN:/opt/lib", "/opt/lib:$ORIGIN"),
    ],
    ids=["right in any place", "in their place when others change", "once"],
)
def test_intended_entries_keep_their_spelling(run_path: str, expected: str | None) -> None:
    elf = library("libhipsparse.so.1", "librocsparse.so.1", runpath=run_path)
    kept = KeptEntries(intended=frozenset({"/opt/lib"}))
    edit = run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RUNPATH, kept)
    assert edit == (SetRunpath(expected, RunpathTag.RUNPATH) if expected else None)


def test_an_rpath_ignored_by_the_loader_is_not_judged() -> None:
    elf = library("libx.so", "librocsparse.so.1", rpath=f"$ORIGIN/../../{CORE}", runpath="/opt/lib")
    kept = KeptEntries(intended=frozenset({"/opt/lib"}))
    edit = run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RUNPATH, kept)
    assert edit == SetRunpath("$ORIGIN:/opt/lib", RunpathTag.RUNPATH)


def test_an_edit_leaves_only_one_tag() -> None:
    elf = library("liba.so", rpath="/a", runpath="/b")
    edited = SetRunpath("$ORIGIN", RunpathTag.RPATH).applied_to(elf)
    assert (edited.rpath, edited.runpath) == ("$ORIGIN", None)
    without = SetRunpath("", RunpathTag.RUNPATH).applied_to(elf)
    assert (without.rpath, without.runpath) == (None, None)


@pytest.mark.parametrize("entry", ["$ORIGIN/nope/..", "$ORIGIN/../lib/nope/../"])
def test_an_entry_that_passes_through_a_missing_folder_is_wrong(entry: str) -> None:
    elf = library("libhipsparse.so.1", "librocsparse.so.1", runpath=entry)
    edit = run_path_edit(elf, LIBRARIES, SEARCH, PLACES, RunpathTag.RUNPATH)
    assert edit == SetRunpath("$ORIGIN", RunpathTag.RUNPATH)


def places(**providers: tuple[str, ...]) -> LibraryPlaces:
    return LibraryPlaces(providers, frozenset(folder for folders in providers.values() for folder in folders))


def test_one_folder_with_both_libraries_is_preferred_to_two() -> None:
    assert fewest_folders(["a", "b"], places(a=("one", "both"), b=("two", "both")), "own") == ("both",)


def test_the_folder_of_the_file_itself_is_preferred_only_if_equally_good() -> None:
    assert fewest_folders(["a", "b"], places(a=("other", "own"), b=("other",)), "own") == ("other",)
    assert fewest_folders(["a"], places(a=("other", "own")), "own") == ("own",)


def test_a_library_is_taken_from_the_first_folder_that_contains_it() -> None:
    found = choose_folders(["a", "b", "c"], ("one", "two", "idle"), places(a=("two", "one"), b=("two",), c=()))
    assert found == {"one": ("a",), "two": ("b",)}


_NAMES = st.sampled_from(["a", "b", "c", "d"])
_FOLDERS = st.dictionaries(_NAMES, st.lists(st.sampled_from(["p", "q", "r", "s"]), unique=True).map(tuple))


@given(st.lists(_NAMES), _FOLDERS)
def test_every_available_library_is_found_and_every_chosen_folder_is_used(
    names: list[str], folders: dict[str, tuple[str, ...]]
) -> None:
    known = places(**folders)
    chosen = choose_folders(names, fewest_folders(names, known, "own"), known)
    found = [name for held in chosen.values() for name in held]
    assert sorted(found) == sorted(name for name in set(names) if folders.get(name))
    assert all(folder in folders[name] for folder, held in chosen.items() for name in held)
    assert all(held for held in chosen.values())
