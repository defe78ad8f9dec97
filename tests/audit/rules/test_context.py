"""Packages beside those that are audited: what is wrong among themselves is nobody's matter, what touches these is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.support.breaches import CORE, TO_CORE, USES_CORE
from tests.support.trees import data, find, library, package, tree

if TYPE_CHECKING:
    from rocwheel.environment.tree import InstalledFile

FIRST, SECOND = package("first", is_context=True), package("second", is_context=True)
LLVM = [
    library("first/libone.so", "libtwo.so", runpath="$ORIGIN", exports=["LLVMInit"]),
    library("first/libtwo.so", exports=["LLVMInit"]),
]


def rules(own: list[InstalledFile], first: list[InstalledFile], second: list[InstalledFile]) -> list[tuple[str, str]]:
    """Return the rules that are broken, with the paths, by a package that requires both others beside it."""
    owner = package("demo", requires=("first", "second"))
    return [(finding.rule, finding.path) for finding in find(tree((owner, own), (FIRST, first), (SECOND, second)))]


def test_files_of_context_packages_may_conflict_with_each_other() -> None:
    assert rules([], [data("same.txt")], [data("same.txt")]) == []
    assert rules([data("same.txt")], [data("same.txt")], [data("same.txt")]) == [("path-collision", "same.txt")]
    audited, beside = (package("demo"), [data("same.txt")]), (FIRST, [data("same.txt")])
    assert [finding.path for finding in find(tree(beside, audited))] == ["same.txt"]


def test_modules_of_context_packages_may_shadow_each_other() -> None:
    assert rules([], [data("x/__init__.py")], [data("x.py")]) == []
    second = (SECOND, [data("x.abi3.so")])
    (finding,) = find(tree((FIRST, [data("x/__init__.py")]), second, (package("third"), [data("x.py")])))
    assert (finding.rule, finding.file) == ("import-clash", "first-1.0-py3-none-manylinux_2_17_x86_64.whl")
    assert finding.found == "ships x/__init__.py, which shadows x in third-1.0-py3-none-manylinux_2_17_x86_64.whl"


def test_symbols_defined_in_two_context_packages_are_not_reported() -> None:
    user = library("demo/a.so", "libone.so", runpath="$ORIGIN/../first")
    assert rules([user], LLVM, []) == []


def test_symbols_of_context_packages_are_reported_if_an_audited_file_loads_both() -> None:
    user = library("demo/a.so", "libone.so", "libtwo.so", runpath="$ORIGIN/../first:$ORIGIN/../second")
    first = [library("first/libone.so", exports=["LLVMInit"])]
    second = [library("second/libtwo.so", exports=["LLVMInit"])]
    assert rules([user], first, second) == [("two-llvms", "first/libone.so")]


@pytest.mark.parametrize(
    ("needed", "found"),
    [("libtwo.so", []), ("libx.so", [("soname-clash", "first/libx.so")])],
    ids=["loaded for packages beside alone", "loaded for an audited file"],
)
def test_sonames_of_context_packages_clash_only_if_audited_files_load_both(
    needed: str, found: list[tuple[str, str]]
) -> None:
    users = [library("demo/a.so", "libone.so", runpath="$ORIGIN/../first")]
    users += [library("demo/b.so", needed, runpath="$ORIGIN/../second")]
    first = [library("first/libone.so", "libx.so", runpath="$ORIGIN"), library("first/libx.so")]
    second = [library("second/libtwo.so", "libx.so", runpath="$ORIGIN"), library("second/libx.so")]
    assert rules(users, first, second) == found


def test_context_packages_are_not_audited() -> None:
    bad = library("_rocm_sdk_core/lib/libamdhip64.so.7", runpath="/home/me", executable_stack=True)
    context = msgspec.structs.replace(CORE, is_context=True)
    user = library("demo/a.so", "libamdhip64.so.7", runpath=TO_CORE)
    assert find(tree((USES_CORE, [user]), (context, [bad]))) == []
