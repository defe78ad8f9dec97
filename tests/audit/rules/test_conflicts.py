"""Symbols that several libraries of one process define."""

from __future__ import annotations

import pytest

from tests.support.breaches import Breach, check_breach, one
from tests.support.trees import find, library

BREACHES = {
    "two-llvms": Breach(
        one(
            library(
                "demo/liba.so", "libb.so", runpath="$ORIGIN", exports=("LLVMInitializeCore", "_ZN4llvm2cl", "_init")
            ),
            library("demo/libb.so", exports=("LLVMInitializeCore", "_ZN4llvm2cl", "_init")),
        ),
        "demo/liba.so",
        "2 symbols are defined in both demo/liba.so and demo/libb.so, which are loaded together for demo/liba.so: "
        "LLVMInitializeCore, _ZN4llvm2cl",
    ),
    "symbol-collision": Breach(
        one(
            library("demo/liba.so", "libb.so", runpath="$ORIGIN", exports=("answer", "_init")),
            library("demo/libb.so", exports=("answer", "_init")),
        ),
        "demo/liba.so",
        (
            "1 symbol is defined in both demo/liba.so and demo/libb.so, "
            "which are loaded together for demo/liba.so: answer"
        ),
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_is_found_and_nothing_else(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


@pytest.mark.parametrize("definitions", [(), ("V1",)], ids=["no versions", "the other's version"])
def test_versions_of_one_side_alone_do_not_keep_symbols_apart(definitions: tuple[str, ...]) -> None:
    audited = one(
        library("demo/a.so", "libb.so", runpath="$ORIGIN", exports=("answer",), definitions=("V1",)),
        library("demo/libb.so", exports=("answer",), definitions=definitions),
    )
    assert [finding.rule for finding in find(audited)] == ["symbol-collision"]


def test_libraries_with_versions_of_their_own_do_not_collide() -> None:
    audited = one(
        library("demo/a.so", "libb.so", runpath="$ORIGIN", exports=("LLVMStart",), definitions=("LLVM_15",)),
        library("demo/libb.so", exports=("LLVMStart",), definitions=("LLVM_19",)),
    )
    assert find(audited) == []


@pytest.mark.parametrize(
    ("symbol", "rule"),
    [
        ("LLVMInitializeCore", "two-llvms"), ("_ZN4llvm2cl", "two-llvms"), ("_ZNK4llvm5Value7getNameEv", "two-llvms"),
        ("_ZTVN4llvm4PassE", "two-llvms"), ("_ZTIN4llvm4PassE", "two-llvms"), ("LLVm", "symbol-collision"),
        ("_ZN5clang4DeclE", "symbol-collision"), ("_ZN3foo4llvmEv", "symbol-collision"),
    ],
)  # fmt: skip
def test_symbols_of_llvm_are_recognised_by_their_names(symbol: str, rule: str) -> None:
    audited = one(
        library("demo/a.so", "libb.so", runpath="$ORIGIN", exports=(symbol,)),
        library("demo/libb.so", exports=(symbol,)),
    )
    assert [finding.rule for finding in find(audited)] == [rule]


def test_libraries_that_no_process_loads_together_do_not_collide() -> None:
    audited = one(library("demo/a.so", exports=("answer",)), library("demo/b.so", exports=("answer",)))
    assert find(audited) == []


UNUSED = library("demo/_unused.so", "libb.so", runpath="$ORIGIN", exports=("LLVMInitializeCore",))
LLVM = library("demo/libb.so", exports=("LLVMInitializeCore",))


def test_two_llvms_in_what_nothing_loads_are_a_warning() -> None:
    module = library("demo/a.so", "libb.so", runpath="$ORIGIN", exports=("PyInit_a",))
    (finding,) = find(one(UNUSED, LLVM, module))
    assert finding.severity.value == "warning"
    assert finding.found.endswith("; nothing in the given packages loads that file")


def test_two_llvms_in_what_an_extension_module_loads_too_are_an_error() -> None:
    module = library("demo/z.so", "_unused.so", runpath="$ORIGIN", exports=("PyInit_z",))
    (finding,) = find(one(UNUSED, LLVM, module))
    assert finding.severity.value == "error"
