"""Tests of `rocwheel.repair.run_path_edits`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.wheel_toolkits import Toolkit
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import read_elf
from rocwheel.environment.run_path_choice import KeptEntries, LibraryPlaces, SetRunpath
from rocwheel.environment.tree import split_environments
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.repair_plan import RepairPlanner
from rocwheel.repair.run_path_edits import entries_to_keep, safe_edits
from tests.repair.plans import Part, plan, run_paths
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.trees import data, library, package, tree
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.environment.tree import InstalledFile
    from rocwheel.repair.repair_plan import RepairPlan
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


def test_entries_kept_for_unspecified_packages_are_counted() -> None:
    assert notes() == (
        "kept 2 run path entries in 1 file: they may point to packages that weren't specified (jaxlib). To keep only "
        "the correct entries, add these packages with --with."
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
def test_there_is_no_note_if_only_correct_entries_are_kept(
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
def test_entries_that_a_file_may_need_are_kept(
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
def test_entries_that_provably_resolve_to_nothing_are_removed(entry: str) -> None:
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


def test_a_file_drops_guessed_rocm_folders_if_its_strings_name_the_libraries_it_opens() -> None:
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


def test_a_library_named_only_in_strings_gets_a_run_path_and_a_requirement_for_dropped_folders() -> None:
    found = made(opener("librccl.so.1", run_path="/opt/rocm/lib"))
    assert value(found) == f"{CORE}:$ORIGIN/../_rocm_sdk_libraries/lib"
    assert found.requires == ("rocm-sdk-core>=7,<11", "rocm-sdk-libraries>=7,<11")


def test_a_correct_run_path_gets_no_folder_for_libraries_named_in_strings() -> None:
    found = made(opener("librccl.so.1", run_path=CORE), requires=("rocm-sdk-core",))
    assert (found.edits, found.requires) == ({}, ())


@pytest.mark.parametrize("names", [(), ("libc.so.6",)])
def test_every_folder_is_kept_if_strings_do_not_name_the_libraries_a_file_opens(names: tuple[str, ...]) -> None:
    found = made(opener(*names, run_path=f"/builds/x:{GUESSED}"))
    assert (value(found), found.given_up) == (GUESSED, {})
    assert found.notes[-1] == (
        "1 file opens libraries whose names aren't in its strings, so the run path keeps every folder that may contain "
        "one: demo/a.so. Pass the libraries with --dlopen, or drop the ROCm folders with --toolkit sdk"
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
def test_a_folder_outside_toolkits_is_dropped_only_if_every_opened_library_is_found(
    names: tuple[str, ...], entries: list[str]
) -> None:
    run_path = "/opt/rocm/lib:$ORIGIN/../x/lib:/opt/v/lib"
    assert value(made(opener(*names, run_path=run_path))).split(":") == entries


def test_folders_are_kept_on_request() -> None:
    for file in (opener(*NAMES, run_path=f"/builds/x:{GUESSED}"), library("demo/a.so", runpath=f"/builds/x:{GUESSED}")):
        found = made(file, keep=True)
        assert (value(found), found.given_up) == (GUESSED, {})


def test_folders_are_kept_if_the_wheel_requires_a_release_with_an_unknown_layout() -> None:
    run_path = f"/builds/x:{CORE}:/opt/rocm/lib"
    for file in (opener(*NAMES[:2], run_path=run_path), library("demo/a.so", "libamdhip64.so.7", runpath=run_path)):
        assert value(made(file, requires=("rocm-sdk-core==6.4.*",))) == f"{CORE}:/opt/rocm/lib"
        assert value(made(file, requires=("rocm-sdk-core==7.14.0rc1",))) == CORE


def test_a_repaired_wheel_needs_no_second_repair() -> None:
    for names in (NAMES, ("librccl.so.1",)):
        found = made(opener(*names))
        again = made(opener(*names, run_path=value(found)), requires=found.requires)
        assert (again.edits, again.requires) == ({}, ())


@needs_compiler
@pytest.mark.parametrize("requires", [("other-pkg",), ()], ids=["required, not at hand", "of nobody"])
def test_the_only_run_paths_to_unavailable_libraries_are_kept(
    run: Run, tmp_path: Path, requires: tuple[str, ...]
) -> None:
    needed = ("libother.so.1", "libamdhip64.so.7")
    run_path = "/opt/lib:$ORIGIN/../other_pkg/lib:$ORIGIN/gone:$ORIGIN/external/x:$ORIGIN/../../.."
    tree = build_tree(tmp_path / "tree", Lib("a.so", needed, run_path))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so"}, requires=requires)
    run("repair", wheel, "--output", tmp_path / "out")
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


def test_a_library_still_finds_dependencies_through_an_inherited_rpath() -> None:
    first = library("demo/_e.so", "libmid.so", rpath="$ORIGIN/lib:$ORIGIN/../nvidia/cublas/lib:/tmp/me")
    made = plan(first, library("demo/lib/libmid.so", "libcublas.so.12"))
    kept = SetRunpath("$ORIGIN/lib:$ORIGIN/../nvidia/cublas/lib", RunpathTag.RPATH)
    assert (made.edits, made.left) == ({"demo/_e.so": kept}, {})


def test_setting_a_run_path_does_not_cut_a_library_off_from_an_inherited_rpath() -> None:
    first = library("demo/_e.so", "libmid.so", rpath="/usr/local/cuda/lib64:$ORIGIN/lib:$ORIGIN/other")
    mid = library("demo/lib/libmid.so", "libcublas.so.12", "libq.so")
    made = plan(first, mid, library("demo/other/libq.so"))
    assert "demo/lib/libmid.so" not in made.edits
    assert "libcublas.so.12 in /usr/local/cuda/lib64" in made.left["demo/lib/libmid.so"]


def test_a_library_found_by_another_spelling_still_finds_inherited_libraries() -> None:
    first = library("demo/lib/_e.so", "libmid.so", rpath="$ORIGIN/..:$ORIGIN/../lib:$ORIGIN")
    made = plan(first, library("demo/lib/libmid.so", "libx.so.1"))
    assert (run_paths(made), made.left) == ({"lib/_e.so": "$ORIGIN/..:$ORIGIN"}, {})


def test_an_rpath_that_unavailable_libraries_may_inherit_stays_an_rpath() -> None:
    entries = "$ORIGIN:$ORIGIN/../xpkg/lib:$ORIGIN/../ypkg/lib"
    for run_path in (entries, "$ORIGIN:/opt/x/lib:/opt/y/lib"):
        made = plan(library("demo/_e.so", "libx.so", rpath=run_path), requires="xpkg")
        assert (made.edits, made.left) == ({}, {})


def test_a_wrong_rpath_that_unavailable_libraries_may_inherit_is_fixed_as_an_rpath() -> None:
    made = plan(library("demo/_e.so", "libx.so", rpath="/builds/x:$ORIGIN/../xpkg/lib"), requires="xpkg")
    assert made.edits == {"demo/_e.so": SetRunpath("$ORIGIN/../xpkg/lib", RunpathTag.RPATH)}


def test_an_rpath_stays_an_rpath_for_libraries_that_a_dependency_may_load() -> None:
    first = library("demo/_e.so", "libmid.so", rpath="$ORIGIN/lib:$ORIGIN/../other/lib")
    mid = library("demo/lib/libmid.so", "libx.so", rpath="/opt/x/lib")
    beside: list[Part] = [(package("other", is_context=True), [library("other/lib/libq.so")])]
    made = plan(first, mid, beside=beside)
    assert all(edit.tag is RunpathTag.RPATH for edit in made.edits.values())


@pytest.mark.parametrize(
    ("opened", "run_path"),
    [((), "$ORIGIN/../../other"), (("libx.so.1",), "$ORIGIN/lib:$ORIGIN/../../other")],
    ids=["nothing else is looked for", "a library that is nowhere at hand is opened"],
)
def test_a_folder_stays_first_if_its_copy_of_a_library_may_load_something_found_nowhere_else(
    opened: tuple[str, ...], run_path: str
) -> None:
    first = library("demo/lib/libc.so", "libb.so", rpath="$ORIGIN")
    user = library("demo/lib/libb.so", "libd.so", rpath="$ORIGIN/lib")
    made = tree((package(), [data("demo/__init__.py", size=9), first, user, library("other/libd.so")]))
    options = RepairOptions(settings=AuditSettings(dlopen={"demo/lib/libc.so": opened}))
    found = RepairPlanner(split_environments(made), options).plan(made.distributions[0])
    assert run_paths(found) == {"lib/libb.so": run_path}


def test_an_entry_through_a_missing_folder_is_not_moved_ahead_of_others() -> None:
    files = [
        library("demo/a.so", "libb.so", runpath="$ORIGIN/nope/../lib:$ORIGIN/lib2"),
        library("demo/lib/libb.so", "libgone.so"),
        library("demo/lib2/libb.so"),
    ]
    assert run_paths(plan(*files)) == {"a.so": "$ORIGIN/lib2"}


def test_a_replacement_file_must_find_its_dependencies() -> None:
    files = [
        library("demo/a.so", "libb.so", runpath="$ORIGIN/lib2:$ORIGIN/lib"),
        library("demo/lib/libb.so", "libgone.so"),
        library("demo/lib2/libb.so"),
    ]
    made = tree((package(), files))
    settings = AuditSettings()
    source = f"{made.distributions[0].source}!demo/a.so"
    edit = SetRunpath("$ORIGIN/lib:$ORIGIN/lib2", RunpathTag.RUNPATH)
    found = safe_edits(made, {source: (edit,)}, {}, settings)
    assert found.edits == {}
    assert found.left == {source: "demo/lib/libb.so would no longer find libgone.so in a package"}


def test_loading_a_broken_file_cancels_the_edits_that_select_another_copy() -> None:
    made = plan(
        library("demo/_m.so", "a.so", "c.so", rpath="$ORIGIN/w:$ORIGIN/sub"),
        library("demo/sub/a.so", "libx.so"),
        library("demo/sub/c.so", "libx.so.1", runpath="$ORIGIN/../q"),
        library("demo/sub/libx.so"),
        library("demo/w/libx.so", soname="libx.so.1"),
        library("demo/q/libx.so.1", "libgone.so"),
    )
    assert made.edits == {}
    assert made.left == {"demo/sub/a.so": "demo/q/libx.so.1 would no longer find libgone.so in a package"}


OTHER: list[Part] = [
    (package("other", is_context=True), [library("other/lib/libq.so"), data("other/__init__.py", size=9)])
]


@pytest.mark.parametrize("run_path", ["$ORIGIN", "$ORIGIN:/opt/x/lib:$ORIGIN/../xpkg/lib"])
def test_an_rpath_becomes_a_runpath_on_request_even_if_inherited(run_path: str) -> None:
    file = library("demo/a.so", "libq.so", "libunseen.so", rpath=run_path)
    made = tree((package(requires=("other",)), [file, data("demo/__init__.py", size=0)]), *OTHER)
    tags = []
    for tag in (None, RunpathTag.RUNPATH):
        found = RepairPlanner(split_environments(made), RepairOptions(tag=tag)).plan(made.distributions[0])
        tags += [edit.tag for edit in found.edits.values()]
        assert found.left == {}
    assert tags == [RunpathTag.RPATH, RunpathTag.RUNPATH]


def test_requesting_runpaths_does_not_lose_what_an_available_library_inherits() -> None:
    files = [
        library("demo/_e.so", "libmid.so", rpath="$ORIGIN/lib:$ORIGIN/other"),
        library("demo/lib/libmid.so", "libq.so"),
        library("demo/other/libq.so"),
    ]
    made = tree((package(), files))
    options = RepairOptions(tag=RunpathTag.RUNPATH)
    found = RepairPlanner(split_environments(made), options).plan(made.distributions[0])
    assert found.edits == {
        "demo/_e.so": SetRunpath("$ORIGIN/lib", RunpathTag.RUNPATH),
        "demo/lib/libmid.so": SetRunpath("$ORIGIN/../other", RunpathTag.RUNPATH),
    }
