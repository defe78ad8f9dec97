"""What a repair leaves: told of the files as they are once their run paths are set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.settings import Configuration
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.linkage import SymbolReference
from rocwheel.linking.run_path_choice import SetRunpath
from rocwheel.repair.outcome import RepairedTree
from tests.support.trees import library, package, tree

if TYPE_CHECKING:
    from rocwheel.installed.tree import Tree

EDITS = {f"{package().source}!demo/a.so": SetRunpath("$ORIGIN/libs", RunpathTag.RUNPATH)}


def left(audited: Tree, **settings: tuple[str, ...]) -> tuple[str, ...]:
    settings_ = msgspec.structs.replace(Configuration(), **settings)
    return RepairedTree(audited, EDITS, settings_).leftovers(audited.distributions[0])


def test_a_library_that_the_new_run_path_leads_to_is_no_leftover() -> None:
    assert left(tree((package(), [library("demo/a.so", "b.so"), library("demo/libs/b.so")]))) == ()


def test_a_library_that_the_new_run_path_does_not_lead_to_is_told() -> None:
    (found,) = left(tree((package(), [library("demo/a.so", "b.so"), library("demo/other/b.so")])))
    assert found.startswith("demo/a.so needs b.so, which is in demo/other, but its run path doesn't lead there")


def test_symbols_are_looked_for_in_what_the_new_run_path_leads_to() -> None:
    references = (SymbolReference("there"), SymbolReference("nowhere"))
    files = [library("demo/a.so", "b.so", references=references), library("demo/libs/b.so", defines=("there",))]
    assert left(tree((package(), files))) == (
        "demo/a.so has 1 undefined symbols that nothing it loads defines: nowhere",
    )


def test_an_executable_stack_is_told() -> None:
    found = left(tree((package(), [library("demo/a.so", executable_stack=True)])))
    assert [text.partition(" ")[0] for text in found] == ["demo/a.so"]


def test_what_other_packages_have_is_not_of_the_wheel() -> None:
    other = (package("other"), [library("other/b.so", executable_stack=True)])
    assert left(tree((package(), [library("demo/a.so")]), other)) == ()
