"""Run path entries that a repair leaves for packages that are not at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.audit.wheel_toolkits import Toolkit
from rocwheel.binary.elf.facts import read_elf
from rocwheel.environment.run_paths import KeptEntries, LibraryPlaces
from rocwheel.environment.tree import split_environments
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.plan import RepairPlanner
from rocwheel.repair.run_paths import entries_to_keep
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.trees import data, library, package, tree
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.environment.tree import InstalledFile
    from rocwheel.repair.plan import RepairPlan
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
    toolkit = Toolkit(is_sdk=replaces, is_told=replaces)
    return entries_to_keep(file, places, is_complete=is_complete, toolkit=toolkit)


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


GUESSED = ":".join(
    (
        "$ORIGIN/../rocm/lib",
        "$ORIGIN/../_rocm_sdk_libraries_gfx90a/lib",
        "$ORIGIN/../../../python3.9/dist-packages/_rocm_sdk_core/lib",
        CORE,
        "$ORIGIN/../_rocm_sdk_libraries/lib",
        "/usr/local/lib/python3.9/dist-packages/_rocm_sdk_core/lib",
        "/opt/rocm/lib",
    )
)
"""What JAX's wheels guess, in short."""
NAMES = ("libibverbs.so.1", "librocm_smi64.so", "librccl.so.1")


def opener(*names: str, run_path: str = GUESSED, needed: tuple[str, ...] = ("libamdhip64.so.7",)) -> InstalledFile:
    """Return a library that opens others by name and has these names in its strings."""
    mentions = frozenset({*names, *needed, "a.so"})
    return library("demo/a.so", *needed, runpath=run_path, imports_dlopen=True, mentions=mentions)


def made(file: InstalledFile, requires: tuple[str, ...] = (), **options: Any) -> RepairPlan:
    environment = split_environments(tree((package(requires=requires), [file])))
    return RepairPlanner(environment, RepairOptions(**options)).plan(environment.everything.distributions[0])


def value(plan: RepairPlan) -> str:
    (edit,) = plan.edits.values()
    return edit.value


def test_a_file_gives_up_the_guessed_folders_of_rocm_if_its_strings_name_what_it_opens() -> None:
    found = made(opener(*NAMES, needed=("libamdhip64.so.7", "librocm_sysdeps_drm.so.2")))
    assert value(found).split(":") == [
        CORE,
        "$ORIGIN/../_rocm_sdk_libraries/lib",
        "$ORIGIN/../_rocm_sdk_core/lib/rocm_sysdeps/lib",
    ]
    assert found.given_up == {
        "demo/a.so": (
            "rocm/lib",
            "_rocm_sdk_libraries_gfx90a/lib",
            "../../python3.9/dist-packages/_rocm_sdk_core/lib",
            "/usr/local/lib/python3.9/dist-packages/_rocm_sdk_core/lib",
            "/opt/rocm/lib",
        )
    }
    assert found.requires == ("rocm-sdk-core>=7,<11", "rocm-sdk-libraries>=7,<11")
    assert (found.left, found.unmended) == ({}, ())


def test_a_library_that_only_strings_name_is_led_to_and_required_in_place_of_what_is_given_up() -> None:
    found = made(opener("librccl.so.1", run_path="/opt/rocm/lib"))
    assert value(found) == f"{CORE}:$ORIGIN/../_rocm_sdk_libraries/lib"
    assert found.requires == ("rocm-sdk-core>=7,<11", "rocm-sdk-libraries>=7,<11")


def test_a_right_run_path_gets_no_folder_for_what_strings_name() -> None:
    found = made(opener("librccl.so.1", run_path=CORE), requires=("rocm-sdk-core",))
    assert (found.edits, found.requires) == ({}, ())


@pytest.mark.parametrize("names", [(), ("libc.so.6",)])
def test_every_folder_stays_if_the_strings_do_not_name_what_a_file_opens(names: tuple[str, ...]) -> None:
    found = made(opener(*names, run_path=f"/builds/x:{GUESSED}"))
    assert (value(found), found.given_up) == (GUESSED, {})
    assert found.notes[-1] == (
        "1 file opens libraries whose names are not in its strings, so every folder of the old run path stays that may "
        "have one: demo/a.so. --dlopen names them, --toolkit sdk gives up the folders of ROCm"
    )
    assert value(made(opener(*names), dlopen=("librccl.so.1",))) == f"{CORE}:$ORIGIN/../_rocm_sdk_libraries/lib"
    assert value(made(opener(*names), toolkit="sdk")) == f"{CORE}:$ORIGIN/../_rocm_sdk_libraries/lib"


@pytest.mark.parametrize(
    ("names", "entries"),
    [
        (("librccl.so.1",), [CORE, "$ORIGIN/../_rocm_sdk_libraries/lib"]),
        (("librccl.so.1", ".so"), ["$ORIGIN/../x/lib", CORE, "$ORIGIN/../_rocm_sdk_libraries/lib", "/opt/v/lib"]),
        (("libamdhip64.so.7.1", "lib%s.so"), ["$ORIGIN/../x/lib", CORE, "/opt/v/lib"]),
        (("libcudart.so.12",), ["$ORIGIN/../x/lib", CORE, "/opt/v/lib"]),
    ],
    ids=["all found", "some put together", "formatted", "one is nowhere"],
)
def test_a_folder_of_no_toolkit_goes_only_if_all_that_a_file_opens_is_found(
    names: tuple[str, ...], entries: list[str]
) -> None:
    run_path = "/opt/rocm/lib:$ORIGIN/../x/lib:/opt/v/lib"
    assert value(made(opener(*names, run_path=run_path))).split(":") == entries


def test_folders_stay_if_a_user_says_so() -> None:
    for file in (opener(*NAMES, run_path=f"/builds/x:{GUESSED}"), library("demo/a.so", runpath=f"/builds/x:{GUESSED}")):
        found = made(file, keep=True)
        assert (value(found), found.given_up) == (GUESSED, {})


def test_folders_stay_if_the_wheel_requires_a_release_whose_layout_is_not_known() -> None:
    run_path = f"/builds/x:{CORE}:/opt/rocm/lib"
    for file in (opener(*NAMES[:2], run_path=run_path), library("demo/a.so", "libamdhip64.so.7", runpath=run_path)):
        assert value(made(file, requires=("rocm-sdk-core==6.4.*",))) == f"{CORE}:/opt/rocm/lib"
        assert value(made(file, requires=("rocm-sdk-core==7.14.0rc1",))) == CORE


def test_what_is_repaired_is_right() -> None:
    for names in (NAMES, ("librccl.so.1",)):
        found = made(opener(*names))
        again = made(opener(*names, run_path=value(found)), requires=found.requires)
        assert (again.edits, again.requires) == ({}, ())


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
