"""Symbols that several libraries of one process define."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.audit.finding import Severity
from tests.support.breaches import CORE, HIP, TO_CORE, Breach, check_breach, one
from tests.support.trees import find, library, package, tree

if TYPE_CHECKING:
    from rocwheel.environment.tree import InstalledFile, Tree

BREACHES = {
    "two-hip-runtimes": Breach(
        one(
            library("demo/a.so", "libamdhip64.so.6", "libamdhip64.so.7", runpath="$ORIGIN"),
            library("demo/libamdhip64.so.6", exports=("hipInit",)),
            library("demo/libamdhip64.so.7", exports=("hipInit",)),
        ),
        "demo/a.so",
        "loads two HIP runtimes: demo/libamdhip64.so.6 (libamdhip64.so.6) and demo/libamdhip64.so.7 (libamdhip64.so.7)",
    ),
    "two-llvms": Breach(
        one(
            library(
                "demo/liba.so", "libb.so", runpath="$ORIGIN", exports=("LLVMInitializeCore", "_ZN4llvm2cl", "_init")
            ),
            library("demo/libb.so", exports=("LLVMInitializeCore", "_ZN4llvm2cl", "_init")),
        ),
        "demo/liba.so",
        "2 symbols are defined in both demo/liba.so and demo/libb.so, which demo/liba.so loads together: "
        "LLVMInitializeCore, _ZN4llvm2cl",
    ),
    "symbol-collision": Breach(
        one(
            library("demo/liba.so", "libb.so", runpath="$ORIGIN", exports=("answer", "_init")),
            library("demo/libb.so", exports=("answer", "_init")),
        ),
        "demo/liba.so",
        ("1 symbol is defined in both demo/liba.so and demo/libb.so, which demo/liba.so loads together: answer"),
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_of_a_rule_is_the_only_finding(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


TORCH = [library("torch/libt.so", "libamdhip64.so.5", runpath="$ORIGIN"), library("torch/libamdhip64.so.5")]


def _triton(soname: str) -> list[InstalledFile]:
    return [library("triton/libt.so", soname, runpath="$ORIGIN"), library(f"triton/{soname}")]


def test_packages_that_require_one_another_must_not_load_two_hip_runtimes() -> None:
    audited = tree((package("torch", requires=("triton",)), TORCH), (package("triton"), _triton("libamdhip64.so.6")))
    (finding,) = find(audited)
    assert (finding.rule, finding.severity, finding.file) == (
        "two-hip-runtimes",
        Severity.WARNING,
        "torch-1.0-py3-none-manylinux_2_17_x86_64.whl",
    )
    assert finding.found == (
        "torch/libt.so loads the HIP runtime torch/libamdhip64.so.5 (libamdhip64.so.5), and triton/libt.so from "
        "triton, which is used in the same process, loads a different runtime: triton/libamdhip64.so.6 "
        "(libamdhip64.so.6)"
    )


def test_a_hip_runtime_renamed_by_auditwheel_conflicts_with_the_sdk_runtime() -> None:
    owner = package("torch", requires=("rocm-sdk-core==1.0",))
    files = [
        library("torch/libt.so", "libamdhip64-1a2b3c4d.so.7.0.1", runpath="$ORIGIN"),
        library("torch/libamdhip64-1a2b3c4d.so.7.0.1"),
        library("torch/libu.so", "libamdhip64.so.7", runpath=TO_CORE.replace("demo", "torch")),
    ]
    audited = tree(
        (owner, files[:2]), (package("vision", requires=("torch", "rocm-sdk-core==1.0")), [files[2]]), (CORE, [HIP])
    )
    assert [finding.rule for finding in find(audited, ignore=("path-collision",))] == ["two-hip-runtimes"]


@pytest.mark.parametrize(
    ("requires", "soname"),
    [
        pytest.param((), "libamdhip64.so.6", id="packages that nothing requires together"),
        pytest.param(("triton",), "libother.so.6", id="another library"),
    ],
)
def test_a_single_hip_runtime_per_process_is_accepted(requires: tuple[str, ...], soname: str) -> None:
    audited = tree((package("torch", requires=requires), TORCH), (package("triton"), _triton(soname)))
    assert find(audited) == []


def test_a_library_that_forwards_to_the_hip_runtime_is_not_a_second_runtime() -> None:
    audited = one(
        library("demo/a.so", "libamdhip64.so", "libamdhip64.so.7", runpath="$ORIGIN"),
        library("demo/libamdhip64.so", "libamdhip64.so.7", runpath="$ORIGIN"),
        library("demo/libamdhip64.so.7"),
    )
    assert find(audited) == []


@pytest.mark.parametrize("definitions", [(), ("V1",)], ids=["no versions", "the other's version"])
def test_missing_or_identical_symbol_versions_do_not_prevent_a_collision(definitions: tuple[str, ...]) -> None:
    audited = one(
        library("demo/a.so", "libb.so", runpath="$ORIGIN", exports=("answer",), definitions=("V1",)),
        library("demo/libb.so", exports=("answer",), definitions=definitions),
    )
    assert [finding.rule for finding in find(audited)] == ["symbol-collision"]


def test_libraries_with_different_symbol_versions_do_not_collide() -> None:
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
def test_llvm_symbols_are_recognized_by_name(symbol: str, rule: str) -> None:
    audited = one(
        library("demo/a.so", "libb.so", runpath="$ORIGIN", exports=(symbol,)),
        library("demo/libb.so", exports=(symbol,)),
    )
    assert [finding.rule for finding in find(audited)] == [rule]


@pytest.mark.parametrize(
    ("needed", "rules"), [(("libstdc++.so.6",), []), ((), ["symbol-collision"])], ids=["shared", "linked statically"]
)
@pytest.mark.parametrize(
    "symbol",
    [
        "_ZGTtNKSt11logic_error4whatEv",
        "__cxa_call_terminate",
        "_ZNSt13random_device7_M_initEv",
        "_ZdlPvm",
        "_ZnwmSt11align_val_t",
    ],
)
def test_libstdcxx_symbols_do_not_collide_if_both_libraries_need_libstdcxx(
    needed: tuple[str, ...], rules: list[str], symbol: str
) -> None:
    audited = one(
        library("demo/a.so", "libb.so", *needed, runpath="$ORIGIN", exports=(symbol,)),
        library("demo/libb.so", *needed, exports=(symbol,)),
    )
    assert [finding.rule for finding in find(audited)] == rules


@pytest.mark.parametrize(
    "symbol",
    [
        "_ZTVN2ov4pass11MatcherPassE",
        "_ZTIN2ov12PartialShapeE",
        "_ZGVZN2ov3Any4ImplIiE3getEvE4info",
        "_ZZN2ov3Any4ImplIiE3getEvE4info",
        "_ZN5arrow18TypedChunkLocationIaEC1Eaa",
        "_ZNK5arrow18TypedChunkLocationIaEeqES1_",
        "_ZN5arrow8IteratorISt10shared_ptrINS_11RecordBatchEEE6DeleteINS_14VectorIteratorIS3_EEEEvPv",
        "_ZN5arrow4castB5cxx11IiEEvT_",
        "_ZN5arrowlsIiEEvT_",
        "_Z3addIiET_S0_",
        "_Z3addB5cxx11IiET_S0_",
    ],
)
def test_symbols_that_compilers_emit_for_every_user_of_a_class_do_not_collide(symbol: str) -> None:
    def files(*exports: str) -> Tree:
        return one(
            library("demo/a.so", "libb.so", runpath="$ORIGIN", exports=exports),
            library("demo/libb.so", exports=exports),
        )

    assert find(files(symbol)) == []
    assert [finding.facts for finding in find(files(symbol, "_ZN2ov5solveEv"))] == [("demo/libb.so", "_ZN2ov5solveEv")]


@pytest.mark.parametrize(
    "symbol",
    [
        "_ZN5arrow5SolveESt6vectorIiSaIiEE",
        "_ZN2IIC1Ev",
        "_Z6InvertPK2IIIiE",
        "_Z3addii1XIiE",
        "_ZNK5arrow4Data4IsInEv",
        "ZIP_Init",
    ],
)
def test_functions_that_merely_take_template_instances_collide(symbol: str) -> None:
    audited = one(
        library("demo/a.so", "libb.so", runpath="$ORIGIN", exports=(symbol,)),
        library("demo/libb.so", exports=(symbol,)),
    )
    assert [finding.rule for finding in find(audited)] == ["symbol-collision"]


def test_a_library_that_replaces_operator_new_collides() -> None:
    audited = one(
        library("demo/a.so", "libb.so", "libstdc++.so.6", runpath="$ORIGIN", exports=("_Znwm",)),
        library("demo/libb.so", "libstdc++.so.6", exports=("_Znwm",)),
    )
    assert [finding.rule for finding in find(audited)] == ["symbol-collision"]


def test_libraries_never_loaded_into_the_same_process_do_not_collide() -> None:
    audited = one(library("demo/a.so", exports=("answer",)), library("demo/b.so", exports=("answer",)))
    assert find(audited) == []


UNUSED = library("demo/_unused.so", "libb.so", runpath="$ORIGIN", exports=("LLVMInitializeCore",))
LLVM = library("demo/libb.so", exports=("LLVMInitializeCore",))


def test_two_llvms_in_a_file_that_nothing_loads_are_a_warning() -> None:
    module = library("demo/a.so", "libb.so", runpath="$ORIGIN", exports=("PyInit_a",))
    (finding,) = find(one(UNUSED, LLVM, module))
    assert finding.severity.value == "warning"
    assert finding.found.endswith("; nothing in the given packages loads that file")


def test_two_llvms_in_a_file_that_an_extension_module_also_loads_are_an_error() -> None:
    module = library("demo/z.so", "_unused.so", runpath="$ORIGIN", exports=("PyInit_z",))
    (finding,) = find(one(UNUSED, LLVM, module))
    assert finding.severity.value == "error"
