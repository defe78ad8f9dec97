"""The plan of a repair: each wheel by itself and what is installed beside it."""

from __future__ import annotations

import subprocess
import sys
from email import message_from_bytes
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rocwheel.audit.audit import check
from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.environment.tree import split_environments
from rocwheel.repair import outcome
from rocwheel.repair.changes import Change
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.repair_plan import RepairPlan, RepairPlanner
from tests.repair.wheels import repaired_plugin
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.trees import MISALIGNED, data, dll, exe, library, package, tree, windows_package, with_files
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.audit.finding import Finding
    from rocwheel.environment.tree import Distribution, Tree
    from tests.support.command_line import Run


def plans(made: Tree) -> list[RepairPlan]:
    planner = RepairPlanner(split_environments(made), RepairOptions())
    return [planner.plan(owner) for owner in made.audited_distributions]


def plugin(tag: str, version: str = "1.0") -> Distribution:
    return package("demo", tag=f"{tag}-manylinux_2_17_x86_64", version=version)


OLD = [library("demo/_e.so", "libq.so"), library("demo/lib/libq.so")]
NEW = [library("demo/_e.so", "libq.so", runpath="$ORIGIN/lib:$ORIGIN/new"), library("demo/new/libq.so")]


@pytest.mark.parametrize(
    "owners",
    [
        [plugin("cp311-cp311"), plugin("cp312-cp312")],
        [plugin("py3-none"), plugin("py2.py3-none", "2.0")],
    ],
    ids=["Pythons", "versions"],
)
def test_wheels_of_the_same_project_do_not_share_folders(owners: list[Distribution]) -> None:
    made = tree((owners[0], OLD), (owners[1], NEW))
    assert [plan.edits["demo/_e.so"].value for plan in plans(made)] == ["$ORIGIN/lib", "$ORIGIN/new"]
    assert [plan.unmended for plan in plans(made)] == [(), ()]


def test_segments_that_old_glibc_releases_refuse_are_realigned_and_the_tag_stays() -> None:
    files = [library("demo/a.so", segments=MISALIGNED), library("demo/b.so", rpath="$ORIGIN", segments=MISALIGNED)]
    (plan,) = plans(tree((package(), files)))
    alignment = ("alignment of the segment at 0xa00000", "0x200000", "0x1000")
    assert [msgspec.structs.astuple(change) for change in plan.changes] == [
        ("demo/a.so", *alignment),
        ("demo/b.so", *alignment),
    ]
    assert plan.file_name == "demo-1.0-py3-none-manylinux_2_17_x86_64.whl"


def test_each_wheel_gets_notes_for_its_own_environment() -> None:
    owners = [plugin("cp311-cp311"), plugin("cp312-cp312")]
    made = tree((owners[0], [library("demo/_e.so", "libq.so")]), (owners[1], NEW))
    first, second = plans(made)
    assert (len(first.unmended), second.unmended) == (1, ())


def test_wheels_in_the_same_environment_are_audited_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []
    checked: list[Subject] = []

    def build(made: Tree, settings: AuditSettings) -> Subject:
        built.append(len(made.distributions))
        return Subject(made, settings)

    def check_counted(subject: Subject) -> tuple[Finding, ...]:
        checked.append(subject)
        return check(subject)

    monkeypatch.setattr(outcome, "Subject", build)
    monkeypatch.setattr(outcome, "check", check_counted)
    plans(tree(*((package(f"demo{number}"), [library(f"demo{number}/a.so")]) for number in range(5))))
    assert (built, len(checked)) == ([5], 1)


def test_run_paths_point_to_libraries_of_the_same_architecture() -> None:
    files = [library("demo/_e.so", "liba.so"), library("demo/_arm.so", "liba.so", machine=183)]
    files += [library("demo/arm/liba.so", machine=183), library("demo/z/liba.so")]
    (plan,) = plans(tree((package(tag="py3-none-any"), files)))
    assert {name: edit.value for name, edit in plan.edits.items()} == {
        "demo/_e.so": "$ORIGIN/z",
        "demo/_arm.so": "$ORIGIN/arm",
    }
    assert plan.unmended == ()


@pytest.mark.parametrize(
    ("run_paths", "what", "before"),
    [
        ({"rpath": "$ORIGIN/lib"}, "RPATH -> RUNPATH", "$ORIGIN/lib"),
        ({"runpath": "/opt"}, "RUNPATH", "/opt"),
        (
            {"rpath": "/opt", "runpath": "$ORIGIN/lib"},
            "RPATH and RUNPATH -> RUNPATH",
            "RPATH /opt and RUNPATH $ORIGIN/lib",
        ),
        ({}, "RUNPATH", ""),
    ],
    ids=["another tag", "another list", "both", "none"],
)
def test_a_run_path_change_shows_all_previous_values(run_paths: dict[str, Any], what: str, before: str) -> None:
    made = tree((package(), [library("demo/_e.so", "libq.so", **run_paths), library("demo/lib/libq.so")]))
    plan = RepairPlanner(split_environments(made), RepairOptions(tag=RunpathTag.RUNPATH)).plan(made.distributions[0])
    assert plan.changes == (Change("demo/_e.so", what, before, "$ORIGIN/lib"),)


def test_a_wheel_without_machine_code_stays_pure() -> None:
    (plan,) = plans(tree((package(tag="py3-none-any", is_purelib=True), [data("demo/__init__.py")])))
    assert (plan.is_platlib, plan.changes) == (False, ())


@pytest.mark.parametrize(("place", "is_platlib"), [("", True), ("demo-1.0.data/platlib/", False)])
def test_a_pure_wheel_that_installs_machine_code_to_platlib_stays_pure(place: str, is_platlib: bool) -> None:
    made = tree((package(is_purelib=True), [library("demo/_e.so")]))
    files = [
        msgspec.structs.replace(file, source=f"{file.distribution}!{place}{file.path}") if file.elf else file
        for file in made.files
    ]
    (plan,) = plans(with_files(made, files))
    assert plan.is_platlib is is_platlib


def test_assumed_versions_of_unspecified_packages_are_noted() -> None:
    needs = [library("demo/_e.so", "libq.so", "libamdhip64.so.7")]
    made = tree((package(), needs), (package("other", is_context=True), [library("other/libq.so")]))
    (plan,) = plans(made)
    assert plan.requires == ("other==1.0.*", "rocm-sdk-core>=7,<11")
    assert [note.partition(" is based on")[0] for note in plan.notes] == ["Requires-Dist: rocm-sdk-core>=7,<11"]
    plan = RepairPlanner(split_environments(made), RepairOptions(pin="none")).plan(made.distributions[0])
    assert plan.requires == ("other", "rocm-sdk-core")
    assert [note.partition(" allows any")[0] for note in plan.notes] == ["Requires-Dist: rocm-sdk-core"]


def test_a_library_that_is_opened_by_name_but_not_found_is_unresolved() -> None:
    made = tree((package(), [library("demo/_e.so", imports_dlopen=True)]))
    plan = RepairPlanner(split_environments(made), RepairOptions(dlopen=("libnowhere.so",))).plan(made.distributions[0])
    assert [text.partition(", ")[0] for text in plan.unmended] == ["demo/_e.so opens libnowhere.so at run time"]


def test_the_reason_why_a_run_path_does_not_reach_an_available_library_is_reported() -> None:
    files = [
        library("demo/lib/libb.so", rpath="$ORIGIN:$ORIGIN:$ORIGIN/nope/../lib"),
        library("other/libd.so", runpath="$ORIGIN"),
    ]
    opened = AuditSettings(dlopen={"other/libd.so": ("libgone.so",), "demo/lib/libb.so": ("libd.so",)})
    made = tree((package(), files))
    plan = RepairPlanner(split_environments(made), RepairOptions(settings=opened)).plan(made.distributions[0])
    assert plan.edits["demo/lib/libb.so"].value == "$ORIGIN:$ORIGIN/nope/../lib"
    gone = "neither the packages, the SDK, nor the allowed system libraries include it"
    assert plan.unmended[1:] == (f"other/libd.so opens libgone.so at run time, but {gone}",)
    assert plan.unmended[0] == (
        "demo/lib/libb.so opens libd.so at run time, but its run path doesn't lead there. The repair doesn't set a "
        "run path that points there: other/libd.so would no longer find libgone.so, which the libd.so in demo/lib, "
        "demo/lib/lib may have loaded"
    )


def test_a_note_explains_why_a_library_is_found_only_through_another_file() -> None:
    files = [
        library("demo/a.so", "libamdhip64.so.6", "libb.so", "libd.so", rpath="$ORIGIN"),
        library("demo/lib/libb.so", runpath="$ORIGIN"),
        library("other/libd.so", "libb.so", rpath="$ORIGIN:$ORIGIN:$ORIGIN/../../../../lib"),
    ]
    sdk = package("rocm-sdk-core", version="7.1.2", is_context=True), [library("_rocm_sdk_core/lib/libamdhip64.so.7")]
    opened = AuditSettings(dlopen={"demo/lib/libb.so": ("libamdhip64.so.7",)})
    made = tree((package(), files), sdk)
    plan = RepairPlanner(split_environments(made), RepairOptions(settings=opened)).plan(made.distributions[0])
    assert plan.edits["other/libd.so"].value == "$ORIGIN:$ORIGIN/../../../../lib"
    assert plan.notes[1] == (
        "other/libd.so finds libb.so only through the RPATH of a file that loads it. The repair doesn't set a run path "
        "that points there: demo/lib/libb.so would no longer find libamdhip64.so.7, which the libb.so in other, "
        "$ORIGIN/../../../../lib may have loaded"
    )


def test_a_library_in_the_wheel_is_not_left_to_the_system_toolkit() -> None:
    files = [
        library("demo/a.so", "libb.so", "libc.so", rpath="$ORIGIN:$ORIGIN:/usr/local/cuda/lib64"),
        library("demo/lib/libb.so"),
        library("demo/lib/libc.so", runpath="$ORIGIN"),
    ]
    made = tree((package(), files))
    opened = AuditSettings(dlopen={"demo/lib/libc.so": ("libcudart.so.12",)})
    plan = RepairPlanner(split_environments(made), RepairOptions(settings=opened)).plan(made.distributions[0])
    assert [text.partition(",")[0] for text in plan.unmended if "doesn't set a run path" in text] == [
        "demo/a.so needs libb.so",
        "demo/a.so needs libc.so",
    ]


def test_a_package_that_ships_a_library_does_not_require_another_package_for_it() -> None:
    own = [library("demo/a.so", "libz.so.1", runpath="$ORIGIN"), library("demo/libz.so.1")]
    other = package("other", is_context=True)
    made = tree((other, [library("other/libz.so.1")]), (package(), own))
    assert RepairPlanner(split_environments(made), RepairOptions()).plan(made.distributions[1]).requires == ()


@needs_compiler
def test_metadata_and_tags_match_what_the_files_need(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path
) -> None:
    run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out", "--pin", "exact")
    repaired = repaired_plugin(tmp_path / "out")
    assert repaired.name == "plugin-1.0-py3-none-manylinux_2_5_x86_64.whl"
    texts = members(repaired)
    metadata = message_from_bytes(texts["plugin-1.0.dist-info/METADATA"])
    assert metadata.get_all("Requires-Dist") == ["rocm-sdk-core==7.1.2"]
    assert metadata.get_payload() == "A description.\n"
    wheel = message_from_bytes(texts["plugin-1.0.dist-info/WHEEL"])
    assert (wheel["Tag"], wheel["Root-Is-Purelib"]) == ("py3-none-manylinux_2_5_x86_64", "false")


def test_a_kept_build_machine_folder_is_noted() -> None:
    files = [
        library("demo/a.so", "libgone.so", runpath="/home/me/lib:$ORIGIN"),
        library("demo/b.so", "libc.so.6", runpath="/home/me/lib:$ORIGIN"),
    ]
    (plan,) = plans(tree((package(), files)))
    (note,) = plan.notes
    assert note == (
        "1 file searches /home/me/lib, a path from the build machine, because other machines may have the missing "
        "libraries in that folder. Add the packages with these libraries with --with, or remove the entries with "
        "'rocwheel runpath set'"
    )


@pytest.mark.parametrize("folder", ["external", "sandbox"])
def test_a_wheel_folder_named_like_a_build_folder_is_not_noted(folder: str) -> None:
    files = [
        library("demo/a.so", "libx.so.1", runpath=f"$ORIGIN/../{folder}/lib"),
        library(f"{folder}/lib/libx.so.1"),
    ]
    (plan,) = plans(tree((package(), files)))
    assert (plan.edits, plan.notes) == ({}, ())


def test_a_musl_wheel_is_left_unchanged_with_a_note() -> None:
    files = [library("demo/a.so", "libamdhip64.so.7", "libc.musl-x86_64.so.1", runpath="/opt/x/lib")]
    (plan,) = plans(tree((package(tag="py3-none-musllinux_1_2_x86_64"), files)))
    assert (plan.changes, plan.unmended) == ((), ())
    assert plan.notes == (
        "is for musl, whose loader has different rules: the run paths of 1 file and the requirements don't change",
    )


def test_windows_files_are_left_unchanged_with_a_note() -> None:
    (plan,) = plans(tree((windows_package(), [dll("demo/a.dll"), exe("demo/a.exe")])))
    assert plan.notes == (
        "2 files are for Windows, which has no run paths, and don't change: 'rocwheel audit' finds missing DLLs",
    )


def test_windows_programs_shipped_as_data_are_not_noted() -> None:
    (plan,) = plans(tree((package(tag="py3-none-any"), [exe("demo/launcher.exe")])))
    assert plan.notes == ()


def test_file_modes_in_a_windows_wheel_do_not_cause_a_rewrite() -> None:
    files = [data(f"demo/{name}.py", mode=0o100666) for name in "ab"]
    found = [plan.changes for made in (windows_package(), package()) for plan in plans(tree((made, files)))]
    assert [len(changes) for changes in found] == [0, 2]


TORCH = "$ORIGIN/../torch/lib"


@pytest.mark.parametrize(
    ("needed", "requires", "run_path", "added"),
    [
        (("libtorch.so", "libc10.so"), (), TORCH, ("torch",)),
        (("libtorch_python.so",), ("torch>=2.9",), TORCH, ()),
        (
            ("libtorch_hip.so", "libamdhip64.so.7"),
            (),
            f"{TORCH}:$ORIGIN/../_rocm_sdk_core/lib",
            ("torch", "rocm-sdk-core>=7,<11"),
        ),
        (("libc10_cuda.so", "libcudart.so.12"), ("numpy",), TORCH, ("torch",)),
    ],
)
def test_a_torch_extension_gets_a_requirement_and_run_path_even_without_torch_available(
    needed: tuple[str, ...], requires: tuple[str, ...], run_path: str, added: tuple[str, ...]
) -> None:
    (plan,) = plans(tree((package(requires=requires), [library("demo/_C.so", *needed)])))
    assert (plan.edits["demo/_C.so"].value, plan.requires) == (run_path, added)


def test_an_added_torch_requirement_comes_with_a_note_about_versions() -> None:
    (plan,) = plans(tree((package(), [library("demo/_C.so", "libtorch.so")])))
    (note,) = plan.notes
    assert plan.unmended == ()
    assert note == (
        "Requires-Dist: torch allows any version, but extension modules work only with the torch version that "
        "they were built with: add torch with --with"
    )


def test_an_available_torch_is_used() -> None:
    torch = package("torch", is_context=True)
    made = tree((package(), [library("demo/_C.so", "libtorch.so")]), (torch, [library("torch/lib64/libtorch.so")]))
    (plan,) = plans(made)
    assert (plan.edits["demo/_C.so"].value, plan.requires) == ("$ORIGIN/../torch/lib64", ("torch==1.0.*",))


def test_a_wheel_that_ships_torch_libraries_does_not_require_torch() -> None:
    (plan,) = plans(tree((package(), [library("demo/_C.so", "libtorch.so"), library("demo/lib/libtorch.so")])))
    assert (plan.edits["demo/_C.so"].value, plan.requires) == ("$ORIGIN/lib", ())


@needs_compiler
def test_the_loader_finds_torch_from_an_extension_repaired_without_torch(run: Run, tmp_path: Path) -> None:
    built = build_tree(
        tmp_path / "built",
        Lib("demo/_C.so", ("libtorch.so", "libc10.so")),
        Lib("torch/lib/libtorch.so", ("libc10.so",), "$ORIGIN"),
        Lib("torch/lib/libc10.so"),
    )
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/_C.so": built / "demo/_C.so"})
    done = run("repair", wheel, "--output", tmp_path / "out")
    assert done.status == 0, done.stderr
    (repaired,) = (tmp_path / "out").glob("demo-*.whl")
    texts = members(repaired)
    assert message_from_bytes(texts["demo-1.0.dist-info/METADATA"]).get_all("Requires-Dist") == ["torch"]
    load = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(built / 'demo/_C.so')!r})"]
    assert b"libtorch.so: cannot open" in subprocess.run(load, env={}, capture_output=True, check=False).stderr
    (built / "demo/_C.so").write_bytes(texts["demo/_C.so"])
    subprocess.run(load, env={}, check=True)
