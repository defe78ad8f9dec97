"""Undefined symbols, and what may define them."""

from __future__ import annotations

import pytest

from rocwheel.binary.elf.symbols import SymbolReference
from tests.support.breaches import TO_CORE, USES_CORE, Breach, check_breach, one
from tests.support.trees import find, library

F = SymbolReference("f")

BREACHES = {
    "undefined-symbol": Breach(
        one(
            library("demo/a.so", "libb.so", runpath="$ORIGIN", references=(SymbolReference("f"), SymbolReference("g"))),
            library("demo/libb.so", defines=("f",)),
            library("demo/libc.so", defines=("g",)),
        ),
        "demo/a.so",
        "has 1 undefined symbol that no loaded library defines: g; the file works only if demo/libc.so, which "
        "defines it, "
        "is loaded first with RTLD_GLOBAL",
    ),
    "version-of-unneeded": Breach(
        one(library("demo/a.so", "libm.so.6", versions_of=("libm.so.6", "libb.so")), library("demo/libb.so")),
        "demo/a.so",
        "requires versions of libb.so, which no loaded file needs: the loader aborts",
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_of_a_rule_is_the_only_finding(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


@pytest.mark.parametrize(
    ("needed", "reference", "is_met"),
    [
        ((), SymbolReference("PyLong_FromLong"), False),
        (("libc.so.6",), SymbolReference("malloc", "GLIBC_2.2.5", "libc.so.6"), True),
        (("libz.so.1",), SymbolReference("deflate"), True),
        (("libz.so.1",), F, False),
        (("libc.so.6", "libm.so.6"), SymbolReference("sin"), True),
        (("libc.so.6",), SymbolReference("sin"), False),
        (("libstdc++.so.6",), SymbolReference("sin"), True),
        (("libstdc++.so.6",), SymbolReference("pthread_create"), True),
        (("libstdc++.so.6",), SymbolReference("_ZNSt8ios_base4InitC1Ev"), True),
        (("libstdc++.so.6",), SymbolReference("_ZN4mine6StringC1Ev"), False),
        (("libm.so.6",), SymbolReference("malloc"), True),
        (("libc.so.6",), F, False),
        (("libamdhip64.so.7",), SymbolReference("hipMalloc"), True),
        (("libamdhip64.so.7",), SymbolReference("hipMalloc", "hip_4.2", "libamdhip64.so.7"), True),
        (("libamdhip64.so.7",), SymbolReference("new", "V2", "libb.so"), False),
        (("libnothing.so.1",), F, True),
    ],
    ids=str,
)
def test_a_library_that_was_not_given_may_define_a_symbol(
    needed: tuple[str, ...], reference: SymbolReference, is_met: bool
) -> None:
    audited = one(library("demo/a.so", *needed, runpath=TO_CORE, references=(reference,)), owner=USES_CORE)
    assert (find(audited, select=("undefined-symbol",)) == []) is is_met


def test_copies_of_extension_module_dependencies_may_use_interpreter_symbols() -> None:
    references = (SymbolReference("PyLong_FromLong"),)
    files = (
        library("demo/a.so", "libb.so.1", runpath="$ORIGIN", exports=("PyInit_a",)),
        library("demo/libb.so.1", references=references),
        library("demo/libb.so", references=references, soname="libb.so.1"),
        library("demo/other.so", references=references),
    )
    assert [f.path for f in find(one(*files), select=("undefined-symbol",))] == ["demo/other.so"]


def test_extension_modules_and_their_dependencies_may_use_interpreter_symbols() -> None:
    references = (SymbolReference("PyLong_FromLong"), SymbolReference("_Py_NoneStruct"), SymbolReference("floorf"), F)
    files = (
        library("demo/a.so", "libb.so", runpath="$ORIGIN", exports=("PyInit_a",), references=references),
        library("demo/libb.so", references=references),
    )
    found = [finding.found for finding in find(one(*files), select=("undefined-symbol",))]
    assert found == ["has 1 undefined symbol that no loaded library defines: f"] * 2


@pytest.mark.parametrize("name", ["demo/core.so", "core.so", "*/core.so", "libelsewhere.so.1"])
def test_files_whose_symbols_are_available_at_load_time_can_be_declared(name: str) -> None:
    files = (library("demo/plugin.so", references=(F,)), library("demo/core.so", defines=("f",)))
    assert find(one(*files), loaded_by={"demo/plugin.so": (name,)}) == []


def test_libraries_opened_with_dlopen_do_not_provide_symbols() -> None:
    files = (library("demo/a.so", runpath="$ORIGIN", references=(F,)), library("demo/libb.so", defines=("f",)))
    found = find(one(*files), dlopen={"demo/a.so": ("libb.so",)})
    assert [finding.rule for finding in found] == ["undefined-symbol"]


def test_an_undefined_symbol_in_a_file_that_nothing_loads_is_a_warning() -> None:
    files = (library("demo/a.so", exports=("PyInit_a",)), library("demo/unused.so", references=(F,)))
    (finding,) = find(one(*files))
    assert (finding.severity.value, finding.found) == (
        "warning",
        "has 1 undefined symbol that no loaded library defines: f; nothing in the given packages loads that file",
    )


def test_a_library_that_defines_some_of_the_symbols_is_named() -> None:
    files = (library("demo/a.so", references=(F, SymbolReference("g"))), library("demo/libc.so", defines=("g",)))
    (finding,) = find(one(*files))
    assert finding.found.endswith(" that no loaded library defines: f, g (1 defined in demo/libc.so)")


def test_interpreter_symbols_in_a_file_that_nothing_loads_are_a_note() -> None:
    references = (SymbolReference("PyLong_FromLong"), SymbolReference("_Py_NoneStruct"))
    files = (library("demo/a.so", exports=("PyInit_a",)), library("demo/lib_caster.so", references=references))
    (finding,) = find(one(*files))
    assert finding.severity.value == "note"
    assert finding.found == (
        "has 2 undefined symbols that no loaded library defines: PyLong_FromLong, _Py_NoneStruct; the file works "
        "only in a Python process, because the interpreter defines them; nothing in the given packages loads that "
        "file"
    )


def test_an_undefined_symbol_in_an_extension_module_dependency_is_an_error() -> None:
    module = library("demo/a.so", "libb.so", runpath="$ORIGIN", exports=("PyInit_a",))
    (finding,) = find(one(module, library("demo/libb.so", references=(F,))))
    assert (finding.path, finding.severity.value) == ("demo/libb.so", "error")


@pytest.mark.parametrize(
    ("needed", "asked", "exports", "found"),
    [
        ((), "libm.so.6", (), True),
        ((), "libm.so.6", ("PyInit_a",), False),
        ((), "libc.so.6", (), False),
        (("libstdc++.so.6",), "libm.so.6", (), False),
        (("libstdc++.so.6",), "libb.so.1", (), True),
        (("libpthread.so.0",), "libm.so.6", (), True),
        (("libindirect.so",), "libb.so.1", (), False),
        (("libgone.so",), "libb.so.1", (), False),
        (("libamdhip64.so.7",), "libamd_comgr.so.3", (), False),
    ],
)
def test_a_version_may_refer_to_a_library_that_another_file_has_loaded(
    needed: tuple[str, ...], asked: str, exports: tuple[str, ...], *, found: bool
) -> None:
    files = (
        library("demo/a.so", *needed, runpath="$ORIGIN", versions_of=(asked,), exports=exports),
        library("demo/libindirect.so", "libb.so.1", runpath="$ORIGIN"),
        library("demo/libb.so.1"),
    )
    findings = find(one(*files, owner=USES_CORE), select=("version-of-unneeded",))
    assert [finding.facts for finding in findings] == ([(asked,)] if found else [])


def test_a_version_may_refer_to_a_library_declared_as_loaded_first() -> None:
    files = (library("demo/a.so", versions_of=("libb.so.1",)), library("demo/libb.so.1"))
    loaded_by = {"demo/a.so": ("libb.so.1",)}
    assert find(one(*files), select=("version-of-unneeded",), loaded_by=loaded_by) == []


LLVM = SymbolReference("_ZN4llvm4Type11getInt8TyEv")


@pytest.mark.parametrize(
    ("defines", "reference", "is_met"),
    [
        (("llvmGetPassPluginInfo",), LLVM, True),
        (("llvmGetPassPluginInfo",), SymbolReference("_ZTVN4llvm4PassE"), True),
        (("llvmGetPassPluginInfo",), SymbolReference("LLVMContextCreate"), True),
        (("llvmGetPassPluginInfo",), SymbolReference("_ZN5polly3runERN4llvm8FunctionE"), False),
        (("llvmGetPassPluginInfo",), SymbolReference("isl_ctx_alloc"), False),
        ((), LLVM, False),
    ],
)
def test_an_llvm_plugin_gets_its_symbols_from_the_program(
    defines: tuple[str, ...], reference: SymbolReference, is_met: bool
) -> None:
    polly = library("demo/LLVMPolly.so", references=(reference,), defines=defines)
    assert (find(one(polly), select=("undefined-symbol",)) == []) is is_met
