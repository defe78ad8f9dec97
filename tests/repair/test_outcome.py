"""What a repair leaves: told of the files as they are once their run paths are set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.elf.symbols import SymbolReference
from rocwheel.environment.run_path_choice import SetRunpath
from rocwheel.repair.outcome import RepairedTree
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.trees import library, package, tree
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.audit.wheel_toolkits import ToolkitOption
    from rocwheel.environment.tree import InstalledFile, Tree
    from tests.support.command_line import Run

EDITS = {f"{package().source}!demo/a.so": SetRunpath("$ORIGIN/libs", RunpathTag.RUNPATH)}


def left(audited: Tree, **settings: tuple[str, ...]) -> tuple[str, ...]:
    settings_ = msgspec.structs.replace(AuditSettings(), **settings)
    return tuple(one.text for one in RepairedTree(audited, EDITS, {}, settings_).leftovers(audited.distributions[0]))


def test_a_library_on_the_new_run_path_is_not_reported_as_unresolved() -> None:
    assert left(tree((package(), [library("demo/a.so", "b.so"), library("demo/libs/b.so")]))) == ()


def test_a_library_not_on_the_new_run_path_is_reported() -> None:
    (found,) = left(tree((package(), [library("demo/a.so", "b.so"), library("demo/other/b.so")])))
    assert found.startswith("demo/a.so needs b.so, which is in demo/other, but its run path doesn't lead there")


def test_symbols_are_resolved_through_the_new_run_path() -> None:
    references = (SymbolReference("there"), SymbolReference("nowhere"))
    files = [library("demo/a.so", "b.so", references=references), library("demo/libs/b.so", defines=("there",))]
    assert left(tree((package(), files))) == (
        "demo/a.so has 1 undefined symbol that no loaded library defines: nowhere",
    )


def test_an_executable_stack_is_reported() -> None:
    found = left(tree((package(), [library("demo/a.so", executable_stack=True)])))
    assert [text.partition(" ")[0] for text in found] == ["demo/a.so"]


def test_files_of_other_packages_are_not_reported_for_the_wheel() -> None:
    other = (package("other"), [library("other/b.so", executable_stack=True)])
    assert left(tree((package(), [library("demo/a.so")]), other)) == ()


@needs_compiler
def test_a_missing_library_that_no_repair_fixes_is_reported_and_fails(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libnowhere.so.6",)))
    wheel = make_wheel(tmp_path / "dist", "old", {"old/a.so": tree / "a.so"})
    done = run("repair", wheel, "--output", tmp_path / "out", "--quiet")
    assert done.status == 1
    assert done.stderr.splitlines() == [
        (
            "not repaired old-1.0-py3-none-linux_x86_64.whl: old/a.so needs libnowhere.so.6, but neither the "
            "packages, the SDK, nor the allowed system libraries include it"
        )
    ]


@needs_compiler
def test_a_wheel_built_with_an_unlisted_sdk_is_left_unchanged_and_passes(run: Run, tmp_path: Path) -> None:
    libraries = ("libamdhip64.so.6", "librccl.so.1")
    tree = build_tree(tmp_path / "tree", Lib("a.so", libraries, "/../rocm/lib:/opt/rocm/lib:/tmp/me/lib"))
    wheel = make_wheel(tmp_path / "dist", "old", {"old/a.so": tree / "a.so"})
    done = run("repair", wheel, "--output", tmp_path / "out", "--quiet")
    assert (done.status, done.stderr) == (0, "")
    (repaired,) = (tmp_path / "out").glob("*.whl")
    after = members(repaired)
    assert read_elf(after["old/a.so"], name="a").runpath == "/opt/rocm/lib"
    assert b"Requires-Dist" not in after["old-1.0.dist-info/METADATA"]
    again = run("repair", repaired, "--check")
    assert again.status == 0
    assert again.stdout.splitlines() == [
        f"{repaired.name}: no changes",
        "  old/a.so: unchanged",
        "    = libamdhip64.so.6, librccl.so.1: if the system or another package has it in /opt/rocm/lib",
    ]
    assert again.stderr.splitlines() == [
        (
            f"note {repaired.name}: is for another version of ROCm because of libamdhip64.so.6 (the SDK has "
            "libamdhip64.so.7): 1 file keeps the run paths to libraries that weren't specified, in /opt/rocm/lib. "
            "To use the SDK's packages for every library that they have, add --toolkit sdk"
        )
    ]


@needs_compiler
def test_a_wheel_that_needs_a_newer_rocm_than_the_table_fails_and_asks_for_the_sdk(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.99", "librccl.so.1"), "/opt/rocm/lib"))
    wheel = make_wheel(tmp_path / "dist", "new", {"new/a.so": tree / "a.so"})
    done = run("repair", wheel, "--output", tmp_path / "out")
    assert done.status == 1
    assert (
        f"note {wheel.name}: is for a newer ROCm version than rocwheel's list of SDK libraries because of "
        "libamdhip64.so.99 (the SDK has libamdhip64.so.7): run paths keep its folders. To correct the run paths, add "
        "the wheels of that SDK with --with"
    ) in done.stderr.splitlines()


def kept_for_system(
    *files: InstalledFile, option: ToolkitOption = "auto"
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Return what is not repaired, each with its file alone, and what is kept on purpose: files and libraries."""
    made = tree((package(), [*files]))
    owner = made.distributions[0]
    toolkits = {owner.source: Subject(made, AuditSettings()).toolkit_of(owner, option)}
    repaired = RepairedTree(made, {}, toolkits, AuditSettings())
    left = tuple(one.text.partition(",")[0] for one in repaired.leftovers(owner))
    kept = repaired.kept_for_system(owner)
    return left, tuple((path, one.library) for path, found in kept.items() for one in found)


OLD = library("demo/a.so", "libamdhip64.so.6", "libmigraphx_c.so.3", runpath="/opt/rocm/lib")
VENDOR = library("demo/b.so", "libvendor.so.1", runpath="/opt/vendor/lib")
NOWHERE = library("demo/c.so", "libamdhip64.so.6")
LIBS = (("demo/a.so", "libamdhip64.so.6"), ("demo/a.so", "libmigraphx_c.so.3"))


def test_system_option_requires_every_kept_path() -> None:
    expected = ("demo/c.so needs libamdhip64.so.6",), (*LIBS, ("demo/b.so", "libvendor.so.1"))
    assert kept_for_system(OLD, VENDOR, NOWHERE, option="system") == expected


NEWER = library("demo/a.so", "libamd_smi.so.99", "libamdhip64.so.7", runpath="/opt/rocm/lib")


def test_a_library_of_an_unknown_newer_rocm_is_left_to_the_system_only_on_request() -> None:
    kept = (("demo/a.so", "libamdhip64.so.7"),)
    assert kept_for_system(NEWER)[0] == ("demo/a.so needs libamd_smi.so.99",)
    assert kept_for_system(NEWER, option="system") == ((), (("demo/a.so", "libamd_smi.so.99"), *kept))


@pytest.mark.parametrize(
    ("first", "torch"),
    [({}, {"runpath": "/opt/x/lib"}), ({"rpath": "$ORIGIN/../torch:/opt/x/lib"}, {})],
    ids=["by its own run path", "by the RPATH of the wheel's file"],
)
def test_a_library_that_another_package_finds_through_kept_paths_is_left_on_purpose(
    first: dict[str, str], torch: dict[str, str]
) -> None:
    file = library("demo/a.so", "libt.so", **(first or {"runpath": "$ORIGIN/../torch"}))  # type: ignore[arg-type]
    beside = (package("torch", is_context=True), [library("torch/libt.so", "libx.so.1", "libgone.so", **torch)])  # type: ignore[arg-type]
    made = tree((package(requires=("torch",)), [file]), beside)
    owner = made.distributions[0]

    def count_left(option: ToolkitOption) -> int:
        toolkits = {owner.source: Subject(made, AuditSettings()).toolkit_of(owner, option)}
        return len(RepairedTree(made, {}, toolkits, AuditSettings()).leftovers(owner))

    assert (count_left("auto"), count_left("system")) == (2, 0)


def test_a_library_opened_through_kept_paths_is_left_on_purpose() -> None:
    made = tree((package(), [library("demo/a.so", runpath="/opt/x/lib"), library("demo/b.so")]))
    owner, settings = made.distributions[0], AuditSettings(dlopen={"*": ("libx.so.1",)})
    toolkits = {owner.source: Subject(made, settings).toolkit_of(owner, "system")}
    left = RepairedTree(made, {}, toolkits, settings).leftovers(owner)
    assert [one.text.partition(",")[0] for one in left] == ["demo/b.so opens libx.so.1 at run time"]


def test_a_wheel_for_another_toolkit_requires_only_the_paths_to_that_toolkit() -> None:
    assert kept_for_system(OLD, VENDOR) == (("demo/b.so needs libvendor.so.1",), LIBS)
    cuda = library("demo/a.so", "libcublas.so.12", runpath="$ORIGIN/../nvidia/cublas/lib")
    assert kept_for_system(cuda, VENDOR) == (("demo/b.so needs libvendor.so.1",), (("demo/a.so", "libcublas.so.12"),))


def test_a_wheel_for_the_sdk_or_for_no_toolkit_requires_no_path() -> None:
    assert kept_for_system(VENDOR) == (("demo/b.so needs libvendor.so.1",), ())
    sdk = library("demo/a.so", "libamdhip64.so.7", "libvendor.so.1", runpath="/opt/vendor/lib")
    assert kept_for_system(sdk)[1] == ()


@needs_compiler
def test_passing_the_original_sdk_repairs_the_wheel_completely(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.6",), "/opt/rocm/lib"), Lib("libamdhip64.so.6"))
    wheel = make_wheel(tmp_path / "dist", "old", {"old/a.so": tree / "a.so"})
    core = make_wheel(
        tmp_path / "sdk",
        "rocm_sdk_core",
        {"_rocm_sdk_core/lib/libamdhip64.so.6": tree / "libamdhip64.so.6"},
        version="6.4",
    )
    done = run("repair", wheel, "--with", core, "--pin", "minor", "--output", tmp_path / "out", "--quiet")
    assert (done.status, done.stderr) == (0, "")
    (repaired,) = (tmp_path / "out").glob("*.whl")
    after = members(repaired)
    assert read_elf(after["old/a.so"], name="a").runpath == "$ORIGIN/../_rocm_sdk_core/lib"
    assert b"Requires-Dist: rocm-sdk-core==6.4.*\n" in after["old-1.0.dist-info/METADATA"]


@needs_compiler
def test_findings_that_remain_after_the_repair_are_reported_and_fail(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("_ext.so", options=("-Wl,-z,execstack",)))
    done = run("repair", make_wheel(tmp_path / "dist", "demo", {"demo/_ext.so": tree / "_ext.so"}), "--dry-run")
    assert done.status == 1
    assert "demo-1.0-py3-none-linux_x86_64.whl: demo/_ext.so requests an executable stack" in (
        " ".join(done.stderr.split())
    )
