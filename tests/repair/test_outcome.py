"""What a repair leaves: told of the files as they are once their run paths are set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.elf.linkage import SymbolReference
from rocwheel.linking.run_path_choice import SetRunpath
from rocwheel.repair.outcome import RepairedTree
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.trees import library, package, tree
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.installed.tree import Tree
    from tests.support.command_line import Run

EDITS = {f"{package().source}!demo/a.so": SetRunpath("$ORIGIN/libs", RunpathTag.RUNPATH)}


def left(audited: Tree, **settings: tuple[str, ...]) -> tuple[str, ...]:
    settings_ = msgspec.structs.replace(AuditSettings(), **settings)
    return RepairedTree(audited, EDITS, {}, settings_).leftovers(audited.distributions[0])


def test_a_library_that_the_new_run_path_leads_to_is_not_a_leftover() -> None:
    assert left(tree((package(), [library("demo/a.so", "b.so"), library("demo/libs/b.so")]))) == ()


def test_a_library_that_the_new_run_path_does_not_lead_to_is_reported() -> None:
    (found,) = left(tree((package(), [library("demo/a.so", "b.so"), library("demo/other/b.so")])))
    assert found.startswith("demo/a.so needs b.so, which is in demo/other, but its run path doesn't lead there")


def test_symbols_are_looked_for_in_what_the_new_run_path_leads_to() -> None:
    references = (SymbolReference("there"), SymbolReference("nowhere"))
    files = [library("demo/a.so", "b.so", references=references), library("demo/libs/b.so", defines=("there",))]
    assert left(tree((package(), files))) == (
        "demo/a.so has 1 undefined symbol that nothing it loads defines: nowhere",
    )


def test_an_executable_stack_is_reported() -> None:
    found = left(tree((package(), [library("demo/a.so", executable_stack=True)])))
    assert [text.partition(" ")[0] for text in found] == ["demo/a.so"]


def test_what_other_packages_have_is_not_of_the_wheel() -> None:
    other = (package("other"), [library("other/b.so", executable_stack=True)])
    assert left(tree((package(), [library("demo/a.so")]), other)) == ()


@needs_compiler
def test_what_no_repair_fixes_is_reported_and_fails(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libnowhere.so.6",)))
    wheel = make_wheel(tmp_path / "dist", "old", {"old/a.so": tree / "a.so"})
    done = run("repair", wheel, "--dest-dir", tmp_path / "out", "--quiet")
    assert done.status == 1
    assert done.stderr.splitlines() == [
        (
            "not repaired old-1.0-py3-none-linux_x86_64.whl: old/a.so needs libnowhere.so.6, but no package, "
            "SDK library or allowed system library provides it"
        )
    ]


@needs_compiler
def test_what_was_built_with_another_sdk_gets_no_worse_and_is_reported(run: Run, tmp_path: Path) -> None:
    libraries = ("libamdhip64.so.6", "librccl.so.1")
    tree = build_tree(tmp_path / "tree", Lib("a.so", libraries, "/../rocm/lib:/opt/rocm/lib:/tmp/me/lib"))
    wheel = make_wheel(tmp_path / "dist", "old", {"old/a.so": tree / "a.so"})
    done = run("repair", wheel, "--dest-dir", tmp_path / "out", "--quiet")
    assert done.status == 1
    name = "not repaired old-1.0-py3-none-linux_x86_64.whl:"
    assert done.stderr.splitlines() == [
        (
            f"{name} old/a.so needs librccl.so.1, which is in _rocm_sdk_libraries/lib, but its run path doesn't lead "
            "there (only a host that has it in /opt/rocm/lib finds it)"
        ),
        (
            f"{name} old/a.so needs libamdhip64.so.6, but no package, SDK library or allowed system library "
            "provides it; the packages and the SDK have other versions: libamdhip64.so.7 "
            "(only a host that has it in /opt/rocm/lib finds it)"
        ),
    ]
    (repaired,) = (tmp_path / "out").glob("*.whl")
    after = members(repaired)
    assert read_elf(after["old/a.so"], name="a").runpath == "/opt/rocm/lib"
    assert b"Requires-Dist" not in after["old-1.0.dist-info/METADATA"]
    again = run("repair", repaired, "--dry-run")
    assert again.stdout.splitlines() == [
        f"{repaired.name}: no changes",
        "  old/a.so: unchanged",
        "    = libamdhip64.so.6, librccl.so.1: if the system or another package has it in /opt/rocm/lib",
    ]
    assert "is for another version of ROCm, judging by libamdhip64.so.6 (the SDK has libamdhip64.so.7)" in again.stderr


@needs_compiler
def test_the_sdk_that_a_wheel_was_built_with_makes_it_whole(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.6",), "/opt/rocm/lib"), Lib("libamdhip64.so.6"))
    wheel = make_wheel(tmp_path / "dist", "old", {"old/a.so": tree / "a.so"})
    core = make_wheel(
        tmp_path / "sdk",
        "rocm_sdk_core",
        {"_rocm_sdk_core/lib/libamdhip64.so.6": tree / "libamdhip64.so.6"},
        version="6.4",
    )
    done = run("repair", wheel, "--with", core, "--pin", "minor", "--dest-dir", tmp_path / "out", "--quiet")
    assert (done.status, done.stderr) == (0, "")
    (repaired,) = (tmp_path / "out").glob("*.whl")
    after = members(repaired)
    assert read_elf(after["old/a.so"], name="a").runpath == "$ORIGIN/../_rocm_sdk_core/lib"
    assert b"Requires-Dist: rocm-sdk-core==6.4.*\n" in after["old-1.0.dist-info/METADATA"]


@needs_compiler
def test_what_the_audit_still_finds_afterwards_is_reported_and_fails(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("_ext.so", options=("-Wl,-z,execstack",)))
    done = run("repair", make_wheel(tmp_path / "dist", "demo", {"demo/_ext.so": tree / "_ext.so"}), "--dry-run")
    assert done.status == 1
    assert "demo-1.0-py3-none-linux_x86_64.whl: demo/_ext.so asks for an executable stack" in (
        " ".join(done.stderr.split())
    )
