"""Repair and audit agree: what a repair leaves is not blamed on not repairing, and a second repair changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.audit.audit import audit
from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.installed.environments import split_environments
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.plan import RepairPlanner
from tests.repair.comparing.test_loss_properties import OPENERS, wheels
from tests.support.example_counts import examples
from tests.support.trees import with_run_paths

if TYPE_CHECKING:
    from rocwheel.installed.tree import Tree
    from rocwheel.repair.plan import RepairPlan

MENTIONS = ("librccl.so.1", "libamdhip64.so.7", "libx.so.1", "libcudart.so.12", "lib%s.so", ".so")


@settings(deadline=None, max_examples=examples(100))
@given(
    st.data(), st.sampled_from(["auto", "system", "sdk"]), st.sampled_from([None, RunpathTag.RUNPATH]), st.booleans()
)
def test_an_audit_does_not_blame_a_repaired_wheel_on_not_repairing(
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
        blamed = [one for one in found if "run rocwheel repair" in one.remedy or "repair does so" in one.remedy]
        told = [text for text in plan.unmended if ". A run path that leads there is not set: " in text]
        blamed = [one for one in blamed if not any(text.startswith(f"{one.path} {one.found}. ") for text in told)]
        assert [(one.rule, one.path, one.found) for one in blamed] == []


def _plan(made: Tree, options: RepairOptions) -> RepairPlan:
    return RepairPlanner(split_environments(made), options).plan(made.distributions[0])


def _repaired(made: Tree, plan: RepairPlan) -> Tree:
    owner = made.distributions[0]
    after = with_run_paths(made, {f"{owner.source}!{member}": edit for member, edit in plan.edits.items()})
    repaired = msgspec.structs.replace(owner, requires=(*owner.requires, *plan.requires))
    return msgspec.structs.replace(after, distributions=(repaired, *made.distributions[1:]))
