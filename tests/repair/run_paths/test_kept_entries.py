"""Run path entries that a repair leaves for packages that are not at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.facts import read_elf
from rocwheel.installed.environments import split_environments
from rocwheel.linking.run_path_choice import KeptEntries, LibraryPlaces
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.plan import RepairPlanner
from rocwheel.repair.run_paths.kept_entries import entries_to_keep
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


ENTRIES = (
    "$ORIGIN/../nvidia/cublas/lib",
    "$ORIGIN/../demo/gone",
    "$ORIGIN/../_rocm_sdk_core/lib",
    "$ORIGIN/../..",
    "$ORIGIN/../../../../lib",
    "/opt/rocm/lib",
    "/opt/vendor/lib",
    "/opt/conda/lib/python3.12/site-packages/torch/lib",
    "/usr/local/cuda-12.4/lib64",
)
INSIDE = frozenset({"nvidia/cublas/lib", "demo/gone", "_rocm_sdk_core/lib"})
OUTSIDE = frozenset({"$ORIGIN/../..", "$ORIGIN/../../../../lib"})
OTHERS = frozenset({"/opt/vendor/lib", "/opt/conda/lib/python3.12/site-packages/torch/lib"})
HOST = OTHERS | {"/opt/rocm/lib", "/usr/local/cuda-12.4/lib64"}


def kept(*entries: str, opens: bool = False, is_complete: bool = False, replaces: bool = False) -> KeptEntries:
    file = library("demo/liba.so", runpath=":".join(entries), imports_dlopen=opens)
    places = LibraryPlaces({}, frozenset({*INSIDE, "demo"}))
    return entries_to_keep(file, places, is_complete=is_complete, replaces_system=replaces)


@pytest.mark.parametrize(
    ("opens", "is_complete", "replaces", "expected"),
    [
        (False, False, False, KeptEntries(INSIDE, OUTSIDE | HOST)),
        (False, False, True, KeptEntries(INSIDE, OUTSIDE | HOST)),
        (True, False, True, KeptEntries(INSIDE, OUTSIDE | HOST)),
        (True, True, False, KeptEntries(INSIDE, OUTSIDE | HOST)),
        (True, True, True, KeptEntries(INSIDE, OUTSIDE | OTHERS)),
        (False, True, False, KeptEntries()),
        (False, True, True, KeptEntries()),
    ],
    ids=[
        "lacks a library",
        "lacks a library and is to use the SDK",
        "opens, lacks, and is to use the SDK",
        "opens by name",
        "opens by name and is to use the SDK",
        "does without",
        "does without and is to use the SDK",
    ],
)
def test_entries_stay_that_a_file_may_need(
    opens: bool, is_complete: bool, replaces: bool, expected: KeptEntries
) -> None:
    assert kept(*ENTRIES, opens=opens, is_complete=is_complete, replaces=replaces) == expected


@pytest.mark.parametrize(
    "entry",
    [
        "$ORIGIN/../../_solib_local/_U_S_Srocm",
        "$ORIGIN/../../external/lib",
        "$ORIGIN/../../bazel-out/lib",
        "$ORIGIN/../../ext.runfiles/lib",
        "/builds/rocm/lib",
        "/root/.cache/bazel/sandbox/7/lib",
        "/__w/project/build",
        "local/lib",
        "",
        ".",
        "RIGIN/../lib",
        "/../rocm/lib",
    ],
)
def test_entries_that_are_proved_to_lead_nowhere_go(entry: str) -> None:
    assert kept("$ORIGIN", entry, opens=True) == KeptEntries(frozenset({"demo"}))


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
    assert value == f"{core}:/opt/lib:$ORIGIN/../other_pkg/lib:$ORIGIN/gone:$ORIGIN/../../.."
    again = run("repair", repaired, "--dry-run")
    assert again.stdout.splitlines() == [
        f"{repaired.name}: no changes",
        "  ext/a.so: unchanged",
        (
            "    = libother.so.1: if the system or another package has it in "
            "/opt/lib:other_pkg/lib:ext/gone:$ORIGIN/../../.."
        ),
        "    = libamdhip64.so.7: in rocm-sdk-core",
    ]
