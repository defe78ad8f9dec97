"""Repair and audit agree: what a repair leaves is not blamed on not repairing, and a second repair changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.audit.audit import audit
from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import ElfKind
from rocwheel.environment.tree import split_environments
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.repair_plan import RepairPlanner
from tests.repair.test_regression_properties import OPENERS, wheels
from tests.support.example_counts import examples
from tests.support.trees import data, dll, find, library, package, tree, with_run_paths

if TYPE_CHECKING:
    from rocwheel.audit.finding import Finding
    from rocwheel.environment.tree import InstalledFile, Tree
    from rocwheel.repair.repair_plan import RepairPlan

MENTIONS = ("librccl.so.1", "libamdhip64.so.7", "libx.so.1", "libcudart.so.12", "lib%s.so", ".so")


@settings(deadline=None, max_examples=examples(100))
@given(
    st.data(), st.sampled_from(["auto", "system", "sdk"]), st.sampled_from([None, RunpathTag.RUNPATH]), st.booleans()
)
def test_an_audit_of_a_repaired_wheel_does_not_suggest_repair(
    data: st.DataObject, toolkit: str, tag: RunpathTag | None, keep: bool
) -> None:
    made = data.draw(wheels())
    mentions = st.frozensets(st.sampled_from(MENTIONS), max_size=2)
    files = (msgspec.structs.replace(file, mentions=data.draw(mentions)) if file.elf else file for file in made.files)
    made = msgspec.structs.replace(made, files=tuple(files))
    opened = AuditSettings(dlopen=data.draw(OPENERS))
    options = RepairOptions(toolkit=toolkit, tag=tag, keep=keep, settings=opened)  # type: ignore[arg-type]
    plan = _plan(made, options)
    repaired = _repaired(made, plan)
    again = _plan(repaired, options)
    assert (again.edits, again.requires) == ({}, ())
    # An audit doesn't know that a user leaves the wheel to the machine's toolkits: it still tells what the SDK has.
    if options.toolkit != "system" and not keep and not plan.left:
        found = audit(split_environments(repaired), opened).findings
        blamed = [
            one for one in found if "run 'rocwheel repair'" in one.remedy or "'rocwheel repair' sets it" in one.remedy
        ]
        told = [
            text
            for text in (*plan.unmended, *plan.notes)
            if ". The repair doesn't set a run path that points there: " in text
        ]
        blamed = [one for one in blamed if not any(text.startswith(f"{one.path} {one.found}. ") for text in told)]
        assert [(one.rule, one.path, one.found) for one in blamed] == []


def test_the_first_repair_points_to_the_sdk_that_it_adds_as_a_requirement() -> None:
    sdk = package("rocm-sdk-core", version="7.1.2", is_context=True), [library("_rocm_sdk_core/lib/libamdhip64.so.7")]
    files = [
        library("demo/a.so", "libamdhip64.so.7", "libcudart.so.12", runpath="$ORIGIN/../_rocm_sdk_core/lib"),
        library("demo/lib/libb.so"),
    ]
    made = tree((package(), files), sdk)
    options = RepairOptions(settings=AuditSettings(dlopen={"demo/lib/libb.so": ("libamdhip64.so.7",)}))
    plan = _plan(made, options)
    assert plan.requires == ("rocm-sdk-core==7.1.*",)
    assert {path: edit.value for path, edit in plan.edits.items()} == {
        "demo/lib/libb.so": "$ORIGIN/../../_rocm_sdk_core/lib"
    }
    again = _plan(_repaired(made, plan), options)
    assert (again.edits, again.requires) == ({}, ())


def test_a_fallback_drops_the_same_entries_as_a_second_repair() -> None:
    sdk = package("rocm-sdk-core", version="7.1.2", is_context=True), [library("_rocm_sdk_core/lib/libamdhip64.so.7")]
    made = tree((package(), [library("demo/a.so", rpath="$ORIGIN/nope/../lib:$ORIGIN", imports_dlopen=True)]), sdk)
    options = RepairOptions(settings=AuditSettings(dlopen={"demo/a.so": ("libamdhip64.so.7",)}))
    plan = _plan(made, options)
    # With $ORIGIN first, what is found there would no longer inherit the way to demo/lib.
    assert {path: edit.value for path, edit in plan.edits.items()} == {
        "demo/a.so": "$ORIGIN/../_rocm_sdk_core/lib:$ORIGIN"
    }
    again = _plan(_repaired(made, plan), options)
    assert (again.edits, again.requires) == ({}, ())


PLATFORMS = (
    "any",
    "manylinux_2_12_x86_64",
    "linux_x86_64",
    "linux_amd64",
    "linux_aarch64",
    "linux_armv7l",
    "musllinux_1_2_x86_64",
    "win_amd64",
    "win64",
    "macosx_11_0_arm64",
    "nonsense",
)
FILES = {
    "a library": library("demo/a.so", "libc.so.6"),
    "an object file": library("demo/a.o", kind=ElfKind.RELOCATABLE),
    "a library for musl": library("demo/a.so", "libc.musl-x86_64.so.1"),
    "a library of another machine": library("demo/a.so", machine=258),
    "a DLL": dll("demo/a.dll"),
    "a DLL of another machine": dll("demo/a.dll", machine=0x200),
    "a library of macOS": data("demo/a.dylib", is_mach_o=True),
    "a text": data("demo/a.py"),
}


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_an_audit_suggests_repair_only_for_tags_that_it_changes(platform: str, file: InstalledFile) -> None:
    made = tree((package(tag=f"py3-none-{platform}", is_purelib=True), [file]))
    plan = _plan(made, RepairOptions())
    tag = plan.file_name.removeprefix("demo-1.0-").removesuffix(".whl")
    after = tree((package(tag=tag, is_purelib=not plan.is_platlib), [file]))
    before = {one.rule for one in find(made) if _is_blamed(one)}
    rules = ("tag-*", "elf-in-*")
    assert [one for one in find(after, select=rules) if _is_blamed(one)] == []
    assert before & {"tag-unknown", "tag-local", "elf-in-any-wheel"} == set() or tag != f"py3-none-{platform}"


def _is_blamed(finding: Finding) -> bool:
    return "repair" in finding.remedy


def _plan(made: Tree, options: RepairOptions) -> RepairPlan:
    return RepairPlanner(split_environments(made), options).plan(made.distributions[0])


def _repaired(made: Tree, plan: RepairPlan) -> Tree:
    owner = made.distributions[0]
    after = with_run_paths(made, {f"{owner.source}!{member}": edit for member, edit in plan.edits.items()})
    repaired = msgspec.structs.replace(owner, requires=(*owner.requires, *plan.requires))
    return msgspec.structs.replace(after, distributions=(repaired, *made.distributions[1:]))
