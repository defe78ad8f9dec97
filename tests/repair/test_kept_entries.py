"""Run path entries that a repair leaves for packages that are not at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.facts import read_elf
from rocwheel.installed.environments import split_environments
from rocwheel.linking.run_path_choice import KeptEntries, LibraryPlaces
from rocwheel.repair.kept_entries import entries_to_keep
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.plan import RepairPlanner
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.trees import data, library, package, tree
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

CORE = "$ORIGIN/../_rocm_sdk_core/lib"
GUESSES = f"{CORE}:$ORIGIN/../nvidia/lib:$ORIGIN/../jaxlib/lib"


def notes(*others: str, requires: tuple[str, ...] = ("jaxlib", "rocm-sdk-core==7.2"), run_path: str = GUESSES) -> str:
    files = [
        library("demo/a.so", "libamdhip64.so.7", runpath=run_path, imports_dlopen=True),
        library("demo/b.so", "libamdhip64.so.7", runpath=CORE),
    ]
    made = tree((package(requires=requires), files), *((package(name), [data(f"{name}/lib/x")]) for name in others))
    return " ".join(RepairPlanner(split_environments(made), RepairOptions()).plan(made.distributions[0]).notes)


def test_entries_that_stay_for_packages_not_at_hand_are_counted() -> None:
    assert notes() == (
        "kept 2 run path entries in 1 file: they may lead to packages that were not given (jaxlib). "
        "Add those packages with --with, and only the right entries stay."
    )


@pytest.mark.parametrize(
    ("others", "requires", "run_path"),
    [
        (("jaxlib",), ("jaxlib", "rocm-sdk-core==7.2"), GUESSES),
        ((), ("rocm-sdk-core==7.2",), GUESSES),
        ((), ("jaxlib", "rocm-sdk-core==7.2"), CORE),
    ],
    ids=["at hand", "none required", "none that leads elsewhere"],
)
def test_there_is_no_note_where_only_right_entries_stay(
    others: tuple[str, ...], requires: tuple[str, ...], run_path: str
) -> None:
    assert notes(*others, requires=requires, run_path=run_path) == ""


PLACES = LibraryPlaces({}, frozenset({"_rocm_sdk_core/lib", "_rocm_sdk_libraries/lib"}))


def kept(entry: str, *, is_lacking: bool = False, has_others: bool = True, opens: bool = True) -> KeptEntries:
    file = library("_rocm_sdk_libraries/lib/liba.so", runpath=f"{entry}:$ORIGIN", imports_dlopen=opens)
    return entries_to_keep(file, PLACES, is_lacking=is_lacking, has_others=has_others)


@pytest.mark.parametrize(
    ("entry", "folder"),
    [
        ("$ORIGIN/../../nvidia/cublas/lib", "nvidia/cublas/lib"),
        ("$ORIGIN/../../external_links/lib", "external_links/lib"),
        ("$ORIGIN/../nowhere", None),
        ("$ORIGIN/../../../lib", None),
        ("$ORIGIN/../..", None),
        ("/opt/rocm/lib", None),
        ("$ORIGIN/../../_solib_local/_U_S_Srocm", None),
        ("$ORIGIN/../../external/lib", None),
        ("$ORIGIN/../../bazel-out/lib", None),
        ("$ORIGIN/../../ext.runfiles/lib", None),
    ],
    ids=[
        "other package",
        "named like a build folder",
        "absent folder of a package",
        "outside of site-packages",
        "site-packages",
        "absolute",
        "_solib",
        "external",
        "bazel-out",
        "runfiles",
    ],
)
def test_a_file_that_opens_libraries_keeps_entries_into_other_packages(entry: str, folder: str | None) -> None:
    assert kept(entry) == KeptEntries(frozenset({folder} if folder else ()))


def test_a_file_that_opens_none_and_lacks_none_keeps_no_entries() -> None:
    assert kept("$ORIGIN/../../nvidia/lib", opens=False) == KeptEntries()
    assert kept("/opt/rocm/lib", has_others=False) == KeptEntries()


def test_a_file_that_lacks_a_library_keeps_absent_folders_of_packages_at_hand() -> None:
    found = kept("$ORIGIN/../nowhere", is_lacking=True, opens=False)
    assert found == KeptEntries(frozenset({"_rocm_sdk_libraries/nowhere", "_rocm_sdk_libraries/lib"}))


def test_a_file_that_lacks_a_library_of_nobody_keeps_the_folders_of_the_host_as_the_last_ones() -> None:
    assert kept("/opt/b:/home/me/lib:/opt/a:/opt/b", is_lacking=True, has_others=False) == KeptEntries(
        last=("/opt/b", "/opt/a")
    )


@needs_compiler
@pytest.mark.parametrize("requires", [("other-pkg",), ()], ids=["required, not at hand", "of nobody"])
def test_run_paths_that_alone_may_lead_to_what_is_not_at_hand_stay(
    run: Run, tmp_path: Path, requires: tuple[str, ...]
) -> None:
    needed = ("libother.so.1", "libamdhip64.so.7")
    run_path = "/opt/lib:$ORIGIN/../other_pkg/lib:$ORIGIN/gone:$ORIGIN/external/x:$ORIGIN/../../.."
    tree = build_tree(tmp_path / "tree", Lib("a.so", needed, run_path))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so"}, requires=requires)
    run("repair", wheel, "--dest-dir", tmp_path / "out")
    (repaired,) = (tmp_path / "out").glob("*.whl")
    value = read_elf(members(repaired)["ext/a.so"], name="a").runpath
    core = "$ORIGIN/../_rocm_sdk_core/lib"
    kept = ["$ORIGIN/../other_pkg/lib", "$ORIGIN/gone", core] if requires else [core, "/opt/lib"]
    assert value == ":".join(kept)
    again = run("repair", repaired, "--dry-run")
    assert again.stdout == f"{repaired.name}: no changes\n"
