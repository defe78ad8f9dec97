"""Every rule of the audit: what breaks it, in the words of its finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rocwheel.audit.finding import Finding, Rule, Severity
from rocwheel.audit.rules import ALL_RULES
from rocwheel.binary.elf.facts import ElfKind
from rocwheel.binary.elf.linkage import SymbolReference
from rocwheel.installed.member_paths import outside_reason
from rocwheel.installed.tree import Distribution, InstalledFile, RecordEntry, Tree
from tests.support.places import ROOT
from tests.support.trees import code, data, find, library, package, program, tree

if TYPE_CHECKING:
    from rocwheel.installed.device_report import DeviceReport

CORE = package("rocm-sdk-core")
HIP = library("_rocm_sdk_core/lib/libamdhip64.so.7", "libc.so.6")
USES_CORE = package(requires=("rocm-sdk-core==1.0",))
TO_CORE = "$ORIGIN/../_rocm_sdk_core/lib"
TAG = "py3-none-manylinux_2_17_x86_64"
LLVM_SYMBOLS = ("LLVMInitializeCore", "_ZN4llvm2cl", "_init")
OUT_OF_REACH = "where its run path doesn't lead: only LD_LIBRARY_PATH or an earlier load would help"
ABSENT = "which none of the packages, the SDK and the allowed system libraries has"
AMD_22, AMD_23 = "AMD clang version 22.0.0git (a)", "AMD clang version 23.0.0git (b)"


def one(*files: InstalledFile, owner: Distribution | None = None) -> Tree:
    return tree((owner or package(), list(files)))


def with_core(*files: InstalledFile, owner: Distribution = USES_CORE) -> Tree:
    return tree((owner, list(files)), (CORE, [HIP]))


def duplicated_record() -> tuple[RecordEntry, ...]:
    made = one(data("demo/a.py"))
    rows = made.distributions[0].record
    return (*rows, rows[0])


BREACHES: dict[str, tuple[Tree, str, str, dict[str, object]]] = {
    "unresolved-library": (
        with_core(library("demo/a.so", "libfoo.so.1")),
        "demo/a.so",
        "needs libfoo.so.1, which none of the packages, the SDK and the allowed system libraries has",
        {},
    ),
    "unreachable-library": (
        with_core(library("demo/a.so", "libamdhip64.so.7", runpath="$ORIGIN")),
        "demo/a.so",
        (
            "needs libamdhip64.so.7, which is in _rocm_sdk_core/lib, where its run path doesn't lead: "
            "only LD_LIBRARY_PATH or an earlier load would help"
        ),
        {},
    ),
    "inherited-run-path": (
        one(
            library("demo/a.so", "libb.so", rpath="$ORIGIN/lib"),
            library("demo/lib/libb.so", "libc.so"),
            library("demo/lib/libc.so"),
        ),
        "demo/lib/libb.so",
        "finds libc.so only by the RPATH of whoever loads it",
        {},
    ),
    "unresolved-dlopen": (
        with_core(library("demo/a.so")),
        "demo/a.so",
        "opens libamdhip64.so.7 at run time, which its run path doesn't lead to",
        {"dlopen": {"demo/*.so": ("libamdhip64.so.7",)}},
    ),
    "undeclared-requirement": (
        with_core(library("demo/a.so", "libamdhip64.so.7", runpath=TO_CORE), owner=package()),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "demo/a.so loads libamdhip64.so.7 from rocm-sdk-core, which it doesn't require",
        {},
    ),
    "unintended-library": (
        with_core(
            library("demo/a.so", "libamdhip64.so.7", runpath=f"{TO_CORE}:$ORIGIN"),
            msgspec.structs.replace(library("demo/libamdhip64.so.7"), sha256=HIP.sha256),
        ),
        "demo/a.so",
        "needs libamdhip64.so.7 and finds _rocm_sdk_core/lib/libamdhip64.so.7 before its own demo/libamdhip64.so.7",
        {},
    ),
    "undefined-symbol": (
        one(
            library("demo/a.so", "libb.so", runpath="$ORIGIN", references=(SymbolReference("f"), SymbolReference("g"))),
            library("demo/libb.so", defines=("f",)),
            library("demo/libc.so", defines=("g",)),
        ),
        "demo/a.so",
        "leaves 1 symbols to others, and loads nothing that defines them: g (demo/libc.so defines 1 of them)",
        {},
    ),
    "run-path-relative": (
        one(library("demo/a.so", runpath="rocm_dis/lib")),
        "demo/a.so",
        "searches 'rocm_dis/lib' in whatever folder the process was started",
        {},
    ),
    "run-path-eaten-origin": (
        one(library("demo/a.so", runpath="/../rocm/lib")),
        "demo/a.so",
        "has '/../rocm/lib': a shell or make has eaten $ORIGIN",
        {},
    ),
    "run-path-build-folder": (
        one(library("demo/a.so", runpath="$ORIGIN/../_solib_k8/_U_S_Sfoo")),
        "demo/a.so",
        "searches '$ORIGIN/../_solib_k8/_U_S_Sfoo', of the machine that built it",
        {},
    ),
    "run-path-absolute": (
        one(library("demo/a.so", runpath="/opt/rocm/lib")),
        "demo/a.so",
        "searches '/opt/rocm/lib' of the host, whatever is there",
        {},
    ),
    "run-path-repeated": (
        one(library("demo/a.so", runpath="$ORIGIN:$ORIGIN/../demo")),
        "demo/a.so",
        "names '$ORIGIN/../demo' more than once",
        {},
    ),
    "run-path-dead": (
        one(library("demo/a.so", runpath="$ORIGIN/lib")),
        "demo/a.so",
        "searches '$ORIGIN/lib', which can't exist once it is installed",
        {},
    ),
    "run-path-wrong-depth": (
        one(library("demo/gpu/a.so", runpath=TO_CORE)),
        "demo/gpu/a.so",
        "is 2 deep, where '$ORIGIN/../_rocm_sdk_core/lib' lead beside the package that is meant",
        {},
    ),
    "run-path-mixed": (
        one(library("demo/a.so", runpath="$ORIGIN"), library("demo/b.so", rpath="$ORIGIN")),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "has 1 files with RPATH (such as demo/b.so) and 1 with RUNPATH",
        {},
    ),
    "rpath-into-others": (
        with_core(library("demo/a.so", "libamdhip64.so.7", rpath=TO_CORE), owner=package(requires=("rocm-sdk-core",))),
        "demo/a.so",
        "has a RPATH into _rocm_sdk_core/lib, which LD_LIBRARY_PATH can't override and the libraries there inherit",
        {},
    ),
    "run-path-unexpected": (
        one(library("demo/a.so", runpath="$ORIGIN")),
        "demo/a.so",
        "has the run path '$ORIGIN' where '$ORIGIN/../_rocm_sdk_core/lib' is expected",
        {"expect_runpath": TO_CORE},
    ),
    "run-path-tag": (
        one(library("demo/a.so", rpath="$ORIGIN")),
        "demo/a.so",
        "has RPATH where RUNPATH is expected",
        {"expect_tag": "runpath"},
    ),
    "unreadable-binary": (one(data("demo/a.so", problem="truncated")), "demo/a.so", "truncated", {}),
    "symlink": (
        one(data("demo/liba.so", link="liba.so.1")),
        "demo/liba.so",
        "is a symlink to liba.so.1: installers write its target's name into a file",
        {},
    ),
    "wrong-mode": (
        one(program("demo/bin/tool", mode=0o100644)),
        "demo/bin/tool",
        "is a program of mode 0644, which can't be run",
        {},
    ),
    "duplicate-library": (
        one(library("demo/libx.so", soname="libx.so.1"), library("demo/libx.so.1")),
        "demo/libx.so",
        "has the SONAME libx.so.1 of another file of its package",
        {},
    ),
    "soname-clash": (
        one(
            library("demo/a/a.so", "libx.so.1", runpath="$ORIGIN"),
            library("demo/a/libx.so.1"),
            library("demo/b/b.so", "libx.so.1", runpath="$ORIGIN"),
            library("demo/b/libx.so.1"),
        ),
        "demo/a/libx.so.1",
        "and demo/b/libx.so.1 are different files of SONAME libx.so.1",
        {},
    ),
    "path-collision": (
        tree((package("one"), [data("shared/x.py", sha256=b"1" * 32)]), (package("two"), [data("shared/x.py")])),
        "shared/x.py",
        f"2 files are installed at shared/x.py, with different content (in one-1.0-{TAG}.whl and two-1.0-{TAG}.whl)",
        {},
    ),
    "path-outside": (
        one(data("../evil.so")),
        "../evil.so",
        "has a path that leads out of the wheel: installers refuse it, or write outside of the environment",
        {},
    ),
    "tag-too-old": (
        one(library("demo/a.so", versions=("GLIBC_2.34",))),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "promises glibc 2.17, but demo/a.so: GLIBC_2.34 asks for more",
        {},
    ),
    "tag-too-new": (
        one(library("demo/a.so"), owner=package(tag="py3-none-manylinux_2_28_x86_64")),
        "demo-1.0-py3-none-manylinux_2_28_x86_64.whl",
        "asks for glibc 2.28, though its files run on 2.17",
        {},
    ),
    "elf-in-any-wheel": (
        one(library("demo/a.so"), owner=package(tag="py3-none-any")),
        "demo-1.0-py3-none-any.whl",
        "is for any platform, but holds demo/a.so",
        {},
    ),
    "elf-in-purelib": (
        one(library("demo/a.so"), owner=package(is_purelib=True)),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "says Root-Is-Purelib: true, but holds demo/a.so",
        {},
    ),
    "wrong-machine": (
        one(library("demo/a.so", machine=183)),
        "demo/a.so",
        "is for machine 183, which demo-1.0-py3-none-manylinux_2_17_x86_64.whl doesn't name",
        {},
    ),
    "wrong-python": (
        one(library("demo/a.so", "libpython3.11.so.1.0")),
        "demo/a.so",
        "needs libpython3.11.so.1.0, and demo-1.0-py3-none-manylinux_2_17_x86_64.whl is for py3-none",
        {},
    ),
    "tag-mismatch": (
        one(owner=package(tags=("py3-none-any",))),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "WHEEL says py3-none-any",
        {},
    ),
    "musl-unchecked": (
        one(library("demo/a.so", "libnothing.so"), owner=package(tag="py3-none-musllinux_1_2_x86_64")),
        "demo-1.0-py3-none-musllinux_1_2_x86_64.whl",
        "is for musl: whether its libraries find each other is not checked",
        {},
    ),
    "executable-stack": (
        one(library("demo/a.so", executable_stack=True)),
        "demo/a.so",
        "asks for an executable stack, which newer systems refuse to dlopen",
        {},
    ),
    "text-relocations": (
        one(library("demo/a.so", text_relocations=True)),
        "demo/a.so",
        "has text relocations: its code is written to when it is loaded",
        {},
    ),
    "writable-code": (
        one(library("demo/a.so", writable_code=True)),
        "demo/a.so",
        "has a segment that is both writable and executable",
        {},
    ),
    "missing-build-id": (
        one(library("demo/a.so", build_id=None)),
        "demo/a.so",
        "has no build id: its debug information can't be told",
        {},
    ),
    "two-llvms": (
        one(
            library(
                "demo/liba.so", "libb.so", runpath="$ORIGIN", exports=("LLVMInitializeCore", "_ZN4llvm2cl", "_init")
            ),
            library("demo/libb.so", exports=("LLVMInitializeCore", "_ZN4llvm2cl", "_init")),
        ),
        "demo/liba.so",
        (
            "2 symbols are defined in demo/liba.so and demo/libb.so, both loaded for demo/liba.so: "
            "LLVMInitializeCore, _ZN4llvm2cl"
        ),
        {},
    ),
    "symbol-collision": (
        one(
            library("demo/liba.so", "libb.so", runpath="$ORIGIN", exports=("answer", "_init")),
            library("demo/libb.so", exports=("answer", "_init")),
        ),
        "demo/liba.so",
        "1 symbols are defined in demo/liba.so and demo/libb.so, both loaded for demo/liba.so: answer",
        {},
    ),
    "device-target-missing": (
        one(library("demo/a.so", device=code(("gfx906", "gfx942"), ("gfx906",)))),
        "demo/a.so",
        "1 of 2 bundles have no code for gfx942: 1",
        {},
    ),
    "device-target-absent": (
        one(library("lib/a.so", device=code(("gfx906",))), owner=package("rocm-sdk-device-gfx942")),
        "rocm_sdk_device_gfx942-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "promises code for gfx942, and has none",
        {},
    ),
    "device-target-uneven": (
        one(
            library("demo/a.so", device=code(("gfx906", "gfx1030"))),
            library("demo/b.so", device=code(("gfx906",), ("gfx942",))),
        ),
        "demo/b.so",
        "has no code for gfx1030, for which demo/a.so has some",
        {"per_file_ignore": {"demo/a.so": ("device-target-uneven",), "demo/b.so": ("device-target-missing",)}},
    ),
    "device-code-versions": (
        one(library("demo/a.so", device=code(("gfx906",), versions=(4, 5)))),
        "demo/a.so",
        "mixes code objects of versions 4, 5",
        {},
    ),
    "device-code-plain": (
        one(library("demo/a.so", device=code(("gfx906",), size=5_000_000, compressed=False))),
        "demo/a.so",
        "1 bundles of 5.0 MB are not compressed, though ROCm 6.2 and later reads such",
        {},
    ),
    "kernel-metadata": (
        one(library("demo/a.so", device=code(("gfx906",), faults=("a metadata note without amdhsa.target",)))),
        "demo/a.so",
        "a metadata note without amdhsa.target",
        {},
    ),
    "device-compilers": (
        one(
            library("demo/a.so", device=code(("gfx906",), compilers=((AMD_22,),))),
            library("demo/b.so", device=code(("gfx906",), compilers=((AMD_23,),))),
        ),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        f"holds device code of 2 compilers: {AMD_22} in demo/a.so; {AMD_23} in demo/b.so",
        {},
    ),
    "host-compiler": (
        one(library("demo/a.so", compilers=("clang version 18.1.8", AMD_22), device=code(("gfx906",)))),
        "demo/a.so",
        f"has host code of clang version 18.1.8 beside device code of {AMD_22}",
        {},
    ),
    "license-file-missing": (
        one(owner=package(license_files=("LICENSE", "NOTICE"))),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "names the licence file NOTICE, which it doesn't hold",
        {},
    ),
    "license-missing": (
        one(owner=package(license="")),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "holds no licence text",
        {},
    ),
    "metadata-malformed": (
        one(owner=package(requires=("rocm-sdk-core = 1",))),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "Requires-Dist 'rocm-sdk-core = 1' is malformed",
        {},
    ),
    "requirement-unsatisfied": (
        with_core(owner=package(requires=("rocm-sdk-core==1.0.post1",))),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "requires rocm-sdk-core==1.0.post1, but beside it is version 1.0",
        {},
    ),
    "requirement-unavailable": (
        one(owner=package(requires=('amd_hipblas_instinct; extra == "with-rocm"',), extras=("with-rocm",))),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        'requires amd_hipblas_instinct; extra == "with-rocm", which none of the given packages is',
        {"closed": True},
    ),
    "record-wrong": (
        one(data("demo/a.py"), owner=package(record=duplicated_record())),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "RECORD lists demo-1.0.dist-info/METADATA 2 times",
        {},
    ),
    "import-clash": (
        tree((package("one"), [data("plugins/__init__.py")]), (package("two"), [data("plugins/x.py")])),
        "one-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "ships plugins/__init__.py, in a namespace that two-1.0-py3-none-manylinux_2_17_x86_64.whl uses, too",
        {},
    ),
}


def brief(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [
        (finding.rule, finding.file.rpartition("!")[2].removeprefix("dist/"), finding.found) for finding in findings
    ]


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_is_found_and_nothing_else(rule: str) -> None:
    audited, file, found, settings = BREACHES[rule]
    assert brief(find(audited, **settings)) == [(rule, file, found)]


def test_every_rule_has_its_breach_here() -> None:
    assert set(BREACHES) == {rule.name for rule in ALL_RULES}


def test_a_package_that_finds_the_sdk_by_its_run_path_has_no_findings() -> None:
    audited = with_core(
        library("demo/a.so", "libamdhip64.so.7", "libb.so", "libc.so.6", runpath=f"$ORIGIN:{TO_CORE}"),
        library("demo/libb.so", "libm.so.6"),
        data("demo/__init__.py"),
    )
    assert find(audited) == []


def test_a_library_that_another_happens_to_have_loaded_is_out_of_reach() -> None:
    audited = one(
        library("demo/a.so", "libb.so", "libc.so", runpath="$ORIGIN/lib"),
        library("demo/lib/libb.so", "libc.so"),
        library("demo/lib/libc.so"),
    )
    assert brief(find(audited)) == [
        (
            "unreachable-library",
            "demo/lib/libb.so",
            f"needs libc.so, which is in demo/lib, {OUT_OF_REACH}",
        )
    ]


def test_an_inherited_entry_counts_even_where_the_library_was_loaded_before() -> None:
    audited = one(
        library("demo/a.so", "libb.so", "libc.so", rpath="$ORIGIN/lib"),
        library("demo/lib/libb.so", "libc.so"),
        library("demo/lib/libc.so"),
    )
    assert [finding.rule for finding in find(audited)] == ["inherited-run-path"]


def test_a_library_that_loses_to_the_systems_is_told() -> None:
    files = (library("demo/a.so", "libz.so.1"), library("demo/libs/libz.so.1"))
    assert brief(find(one(*files))) == [
        (
            "unintended-library",
            "demo/a.so",
            "needs libz.so.1 and finds the system's before its own demo/libs/libz.so.1",
        )
    ]
    assert find(one(library("demo/a.so", "libz.so.1", runpath="$ORIGIN/libs"), files[1])) == []


@pytest.mark.parametrize(
    "own",
    [library("demo/arm/libz.so.1", machine=183), library("demo/glibc-hwcaps/x86-64-v3/libz.so.1")],
    ids=["of another machine", "for better processors"],
)
def test_a_library_that_would_not_serve_loses_to_none(own: InstalledFile) -> None:
    assert find(one(library("demo/a.so", "libz.so.1"), own), ignore=("wrong-machine",)) == []


def test_what_is_found_by_the_folder_of_a_link_is_not_inherited() -> None:
    files = (
        library("lib/real.so", "libx.so", runpath="$ORIGIN"),
        data("bin/real.so", link="../lib/real.so"),
        library("bin/libx.so"),
        library("bin/a.so", "real.so", runpath="$ORIGIN"),
    )
    assert [finding.rule for finding in find(Tree((), files, is_prefix=True))] == ["unreachable-library"]


def test_a_library_that_is_loaded_already_is_nobodys_choice() -> None:
    user = library("demo/a.so", "libb.so", "libx.so", runpath=f"{TO_CORE}:$ORIGIN")
    other = library("_rocm_sdk_core/lib/libb.so", soname="libx.so")
    audited = tree((USES_CORE, [user, library("demo/libx.so", soname="other.so")]), (CORE, [other]))
    assert find(audited, select=("unintended-library",)) == []


def test_what_a_package_beside_does_not_find_is_told_once_of_what_loads_it() -> None:
    context = package("sdk", is_context=True)
    sdk = library("_sdk/libx.so", "libnowhere.so", "liby.so")
    users = [library(f"demo/{name}.so", "libx.so", runpath="$ORIGIN/../_sdk") for name in "ab"]
    audited = tree((package(requires=("sdk",)), users), (context, [sdk, library("_sdk/deep/liby.so")]))
    assert brief(find(audited)) == [
        (
            "unreachable-library",
            "demo/a.so",
            f"loads _sdk/libx.so, which needs liby.so, which is in _sdk/deep, {OUT_OF_REACH}",
        ),
        (
            "unresolved-library",
            "demo/a.so",
            f"loads _sdk/libx.so, which needs libnowhere.so, {ABSENT}",
        ),
    ]


def test_what_a_package_beside_inherits_from_one_user_another_does_not_give_it() -> None:
    sdk = [library("_sdk/libx.so", "liby.so"), library("_sdk/deep/liby.so")]
    entries = "$ORIGIN/../_sdk:$ORIGIN/../_sdk/deep"
    users = [library("demo/a.so", "libx.so", rpath=entries), library("demo/b.so", "libx.so", runpath=entries)]
    audited = tree((package(requires=("sdk==1.0",)), users), (package("sdk", is_context=True), sdk))
    found = find(audited, select=("un*", "inherited-*"))
    assert [(finding.rule, finding.path) for finding in found] == [("unreachable-library", "demo/b.so")]


def test_only_what_a_file_itself_loads_has_to_be_required() -> None:
    audited = tree(
        (package(requires=("middle",)), [library("demo/a.so", "libm1.so", runpath="$ORIGIN/../middle")]),
        (package("middle"), [library("middle/libm1.so", "libamdhip64.so.7", runpath=TO_CORE)]),
        (CORE, [HIP]),
    )
    found = find(audited, select=("undeclared-requirement",))
    assert [finding.file for finding in found] == ["middle-1.0-py3-none-manylinux_2_17_x86_64.whl"]


def test_programs_of_a_wheel_find_the_libraries_beside_the_interpreters() -> None:
    tool = program("../../../bin/tool", "libx.so.1", runpath="$ORIGIN/../lib", references=(F,))
    x = library(
        "../../../lib/libx.so.1", "libamdhip64.so.7", runpath="$ORIGIN/python3/site-packages/_rocm_sdk_core/lib"
    )
    audited = with_core(tool, msgspec.structs.replace(x, traits=library("x", defines=("f",)).traits))
    assert find(audited, ignore=("record-wrong", "path-outside")) == []


def test_a_wheel_may_have_programs_and_libraries_in_its_data_alone() -> None:
    tool = program("../../../bin/tool", "libx.so.1", runpath="$ORIGIN/../lib")
    found = find(one(tool, library("../../../lib/libx.so.1")), ignore=("record-wrong", "path-outside"))
    assert found == []


def test_the_assumed_sdk_serves_files_of_every_machine() -> None:
    files = [
        library(f"demo/{machine}.so", "libamdhip64.so.7", runpath=TO_CORE, machine=machine) for machine in (62, 183)
    ]
    assert find(one(*files, owner=USES_CORE), ignore=("wrong-machine",)) == []


def test_a_folder_that_the_package_has_is_no_build_folder() -> None:
    files = (library("demo/a.so", "libb.so", runpath="$ORIGIN/external/lib"), library("demo/external/lib/libb.so"))
    assert find(one(*files)) == []


@pytest.mark.parametrize(
    ("requirement", "is_release"),
    [("==7.0", True), ("===7.0", True), ("==7.*", False), (">=7", False), ("~=7.0", False), ("", False)],
)
def test_a_release_is_of_one_exact_version(requirement: str, is_release: bool) -> None:
    core = package("rocm-sdk-core", version="7.0")
    owner = package(requires=(f"rocm-sdk-core{requirement}",))
    audited = tree((owner, [library("demo/a.so", "libamdhip64.so.7", rpath=TO_CORE)]), (core, [HIP]))
    assert ([finding.rule for finding in find(audited)] == []) is is_release


@pytest.mark.parametrize(("version", "is_met"), [("7.1rc1", True), ("6.9", False)])
def test_a_prerelease_beside_it_may_satisfy(version: str, is_met: bool) -> None:
    owner = package(requires=("rocm-sdk-core>=7.0",))
    audited = tree((owner, []), (package("rocm-sdk-core", version=version), []))
    assert (find(audited, select=("requirement-unsatisfied",)) == []) is is_met


@pytest.mark.parametrize(
    ("requirement", "found"),
    [
        ("rocm-sdk-core[zz, Fast_Math]", "rocm-sdk-core 1.0 beside it has no extra zz: installers pass over it"),
        ("rocm-sdk-core[fast-math]", ""),
        ('rocm-sdk-core>=2; extra == "gpu"', "beside it is version 1.0"),
        ('rocm-sdk-core>=2; extra == "other"', ""),
        ('rocm-sdk-core[zz]; extra == "gpu"', "rocm-sdk-core 1.0 beside it has no extra zz: installers pass over it"),
    ],
)
def test_extras_count_as_far_as_packages_have_them(requirement: str, found: str) -> None:
    core = (package("rocm-sdk-core", extras=("fast.math",), is_context=True), [HIP])
    audited = tree((package(requires=(requirement,), extras=("gpu",)), []), core)
    texts = [finding.found for finding in find(audited, select=("requirement-unsatisfied",))]
    assert [text.partition(", but ")[2] for text in texts] == ([found] if found else [])


def test_extras_that_an_environment_was_not_asked_for_do_not_count() -> None:
    owner = package(requires=('rocm-sdk-core>=2; extra == "gpu"',), extras=("gpu",), is_wheel=False)
    audited = tree((owner, []), (package("rocm-sdk-core", is_wheel=False), [HIP]))
    assert find(audited, select=("requirement-unsatisfied",)) == []


@pytest.mark.parametrize("definitions", [(), ("V1",)], ids=["no versions", "the other's version"])
def test_versions_of_one_side_alone_do_not_keep_symbols_apart(definitions: tuple[str, ...]) -> None:
    audited = one(
        library("demo/a.so", "libb.so", runpath="$ORIGIN", exports=("answer",), definitions=("V1",)),
        library("demo/libb.so", exports=("answer",), definitions=definitions),
    )
    assert [finding.rule for finding in find(audited)] == ["symbol-collision"]


def test_a_library_at_the_top_of_site_packages_has_a_place_as_any_other() -> None:
    files = [library("demo/_ext.so", "libfoo.so.1"), library("libfoo.so.1")]
    (found,) = find(tree((package(), files)), select=("unreachable-library",))
    assert (found.found.partition(",")[2], found.remedy.partition(" to ")[0]) == (
        f" which is in the top folder, {OUT_OF_REACH}",
        "Add $ORIGIN/..",
    )


def test_an_entry_that_leads_to_the_top_of_site_packages_leads_somewhere() -> None:
    files = [library("demo/_ext.so", "libfoo.so.1", runpath="$ORIGIN/.."), library("libfoo.so.1")]
    assert find(tree((package(), files)), ignore=("tag-*",)) == []


@pytest.mark.parametrize(
    ("asked", "tag", "found"),
    [
        ("GLIBC_2.14", "manylinux_2_17_x86_64.manylinux2014_x86_64", []),
        ("GLIBC_2.25", "manylinux_2_26_x86_64", []),
        ("GLIBC_2.36", "manylinux_2_36_x86_64", []),
        ("GLIBC_2.14", "manylinux_2_24_x86_64", ["tag-too-new"]),
        ("GLIBC_2.35", "manylinux_2_36_x86_64", ["tag-too-new"]),
    ],
)
def test_the_next_tag_that_auditwheel_knows_is_not_too_new(asked: str, tag: str, found: list[str]) -> None:
    names = tuple(f"py3-none-{platform}" for platform in tag.split("."))
    audited = one(library("demo/a.so", versions=(asked,)), owner=package(tag=f"py3-none-{tag}", tags=names))
    assert [finding.rule for finding in find(audited)] == found


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ("$ORIGIN/nope/../libs", "run-path-dead"),
        ("RIGIN/libs", "run-path-eaten-origin"),
        ("/../libs", "run-path-eaten-origin"),
        ("../libs", "run-path-relative"),
        ("$ORIGIN/libs/../libs", None),
    ],
)
def test_entries_that_only_look_as_if_they_led_there_are_told(entry: str, rule: str | None) -> None:
    files = (library("demo/a.so", runpath=entry), library("demo/libs/b.so"))
    assert [f.rule for f in find(one(*files), select=("run-path-*",))] == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("needed", "requires", "is_dead"),
    [
        ("libqt.so.5", ("qt-libraries",), False),
        ("libqt.so.5", (), True),
        ("libqt.so.5", ("rocm-sdk-core",), True),
        ("libc.so.6", ("qt-libraries",), True),
    ],
    ids=["maybe of a package", "of no package", "not of the SDK", "nothing is missing"],
)
def test_a_package_that_is_not_at_hand_may_share_the_folder(
    needed: str, requires: tuple[str, ...], is_dead: bool
) -> None:
    audited = one(library("demo/a.so", needed, runpath="$ORIGIN/qt/lib"), owner=package(requires=requires))
    assert bool(find(audited, select=("run-path-dead",))) is is_dead


def test_a_name_to_open_that_no_package_has_is_not_a_matter_of_run_paths() -> None:
    audited = one(library("demo/a.so"), library("demo/libs/libthere.so"))
    names = {"demo/a.so": ("libthere.so", "libnowhere.so")}
    found = find(audited, dlopen=names, select=("unresolved-dlopen",))
    assert [(f.found, f.remedy.partition(" ")[0]) for f in found] == [
        ("opens libnowhere.so at run time, which none of the packages, the SDK and the system has", "Ship"),
        ("opens libthere.so at run time, which its run path doesn't lead to", "Link"),
    ]


@pytest.mark.parametrize(
    ("platform", "found"),
    [
        ("win_amd64", "is for Linux, and demo-1.0-py3-none-win_amd64.whl for win_amd64"),
        ("musllinux_1_1_x86_64", "needs libc.so.6 of glibc, which systems with musl lack"),
    ],
)
def test_libraries_for_glibc_fit_no_other_systems(platform: str, found: str) -> None:
    audited = one(library("demo/a.so", "libc.so.6"), owner=package(tag=f"py3-none-{platform}"))
    assert [f.found for f in find(audited, select=("wrong-machine",))] == [found]


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (
            RecordEntry("demo/a.so", "md5=00", "1"),
            "RECORD has an md5 hash for demo/a.so; the weakest allowed is sha256",
        ),
        (RecordEntry("demo/a.so", "", "2"), "RECORD has the size 2 for demo/a.so, which has 1 bytes"),
        (RecordEntry("demo/a.so", "", ""), None),
    ],
)
def test_rows_of_record_have_the_size_and_a_strong_hash(row: RecordEntry, found: str | None) -> None:
    audited = one(library("demo/a.so"), owner=package(record=(row,)))
    told = [f.found for f in find(audited, select=("record-wrong",)) if "doesn't list" not in f.found]
    assert told == ([found] if found else [])


@pytest.mark.parametrize(
    ("tag", "needed", "is_wrong"),
    [
        ("py3-none", "libpython3.11.so.1.0", True),
        ("cp311-abi3", "libpython3.11.so.1.0", True),
        ("cp310-cp310", "libpython3.11.so.1.0", True),
        ("cp310.cp311-none", "libpython3.11.so.1.0", True),
        ("cp311-cp311", "libpython3.11.so.1.0", False),
        ("cp314-cp314t", "libpython3.14t.so.1.0", False),
        ("py3-none", "libpython3.so", False),
    ],
)
def test_only_wheels_for_one_python_may_need_its_library(tag: str, needed: str, is_wrong: bool) -> None:
    owner = package(tag=f"{tag}-manylinux_2_17_x86_64")
    audited = one(library("demo/a.so", needed), owner=owner)
    found = [f"needs {needed}, and {owner.label} is for {tag}"] if is_wrong else []
    assert [finding.found for finding in find(audited, select=("wrong-python",))] == found


def test_both_spellings_of_origin_are_the_run_path_that_is_expected() -> None:
    files = (library("demo/a.so", runpath="${ORIGIN}/libs"), library("demo/libs/b.so", runpath="$ORIGIN"))
    found = find(one(*files), expect_runpath="$ORIGIN/libs", select=("run-path-unexpected",))
    assert [f.path for f in found] == ["demo/libs/b.so"]


@pytest.mark.parametrize(
    ("file", "settings", "is_told"),
    [
        (library("demo/a.so", "libc.so.6"), {}, False),
        (library("demo/a.so"), {}, False),
        (library("demo/a.so", "libamdhip64.so.7"), {}, True),
        (library("demo/a.so", "libc.so.6", imports_dlopen=True), {}, True),
        (library("demo/a.so"), {"dlopen": {"demo/*": ("libb.so",)}}, True),
        (library("demo/a.so", "libc.so.6", runpath="$ORIGIN"), {}, True),
    ],
    ids=["the system's alone", "nothing", "the SDK's", "calls dlopen", "opens by name", "another run path"],
)
def test_a_library_that_searches_nothing_needs_not_the_expected_run_path(
    file: InstalledFile, settings: dict[str, Any], is_told: bool
) -> None:
    found = find(one(file), expect_runpath=TO_CORE, select=("run-path-unexpected",), **settings)
    assert bool(found) is is_told


def test_the_sdk_is_taken_to_be_where_its_packages_put_it() -> None:
    owner = package(requires=("rocm-sdk-core", "rocm-sdk-libraries"))
    entries = f"{TO_CORE}:$ORIGIN/../_rocm_sdk_libraries/lib"
    audited = one(library("demo/a.so", "libamdhip64.so.7", "libMIOpen.so.1", runpath=entries), owner=owner)
    assert find(audited) == []


def test_a_package_of_the_sdk_that_is_given_has_what_it_has() -> None:
    user = library("demo/a.so", "libamdhip64.so.7", runpath=TO_CORE)
    assert find(one(user, owner=USES_CORE)) == []
    assert [finding.rule for finding in find(tree((USES_CORE, [user]), (CORE, [])))] == ["unresolved-library"]


def test_a_folder_of_a_package_of_the_sdk_that_is_not_at_hand_may_be_there() -> None:
    user = library("demo/a.so", "libamdhip64.so.7", runpath=f"{TO_CORE}:{TO_CORE}/inner")
    assert find(one(user, owner=USES_CORE)) == []
    there = library("_rocm_sdk_core/lib/libamdhip64.so.7")
    assert [finding.rule for finding in find(tree((USES_CORE, [user]), (CORE, [there])))] == ["run-path-dead"]


@pytest.mark.parametrize(("size", "found"), [((1 << 20) - 1, 0), (1 << 20, 1)])
def test_plain_bundles_are_told_from_a_mebibyte_on(size: int, found: int) -> None:
    audited = one(library("demo/a.so", device=code(("gfx906",), size=size, compressed=False)))
    assert len(find(audited, select=("device-code-plain",))) == found


def test_in_a_closed_set_an_sdk_that_is_not_given_is_not_there() -> None:
    audited = one(library("demo/a.so", "libamdhip64.so.7", runpath=TO_CORE))
    assert [finding.rule for finding in find(audited, closed=True, select=("unresolved-*",))] == ["unresolved-library"]
    assert find(audited, select=("unresolved-*",)) == []


def test_a_library_of_the_sdk_in_another_folder_of_its_package_is_not_found() -> None:
    audited = one(library("demo/a.so", "librocm_sysdeps_drm.so.2", runpath=TO_CORE), owner=USES_CORE)
    (finding,) = find(audited)
    assert finding.rule == "unreachable-library"
    assert finding.found.startswith("needs librocm_sysdeps_drm.so.2, which is in _rocm_sdk_core/lib/rocm_sysdeps/lib,")
    assert finding.remedy.startswith("Add $ORIGIN/../_rocm_sdk_core/lib/rocm_sysdeps/lib to its run path")


def test_an_absolute_entry_is_named_where_it_may_help_on_the_builders_machine() -> None:
    (_, finding) = sorted(find(one(library("demo/a.so", "libfoo.so.1", runpath="/opt/rocm/lib"))), key=lambda f: f.rule)
    assert finding.found.endswith(" has (only a host that has it in /opt/rocm/lib finds it)")


def test_another_version_that_the_sdk_has_is_named() -> None:
    (finding,) = find(one(library("demo/a.so", "libamdhip64.so.6")))
    assert finding.found.endswith(" has; they have libamdhip64.so.7")


@pytest.mark.parametrize(
    "entry",
    [
        "/home/me/build/lib", "/tmp/x/lib", "$ORIGIN/_a.so.runfiles/__main__/x", "$ORIGIN/../../external/r/lib",
        "/usr/lib/python3/site-packages/torch/lib", "bazel-out/k8-opt/bin",
    ],
)  # fmt: skip
def test_build_folders_are_told_by_their_names(entry: str) -> None:
    found = find(one(library("demo/a.so", runpath=entry)), select=("run-path-build-folder",))
    assert [finding.rule for finding in found] == ["run-path-build-folder"]


@pytest.mark.parametrize(
    ("mode", "found"),
    [(0o104755, "has mode 4755, which runs it as another user"), (0o100666, "has mode 0666")],
)
def test_modes_that_installers_should_not_see_are_found(mode: int, found: str) -> None:
    assert [finding.found for finding in find(one(data("demo/x", mode=mode)))] == [found]


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["demo/a.py", "demo/a.py"], "2 files are installed at demo/a.py, with the same content"),
        (["demo/a", "demo/a/b.py"], "demo/a is a file, and also the folder of demo/a/b.py"),
    ],
    ids=["twice", "file and folder"],
)
def test_one_wheel_may_clash_with_itself(paths: list[str], found: str) -> None:
    findings = find(one(*map(data, paths)), select=("path-collision",))
    assert [finding.found for finding in findings] == [found]


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        ("demo/../../evil.so", "a path that leads out of the wheel"),
        ("/etc/evil.so", "an absolute path"),
        ("C:/evil.dll", "an absolute path"),
        ("demo\\evil.dll", "a name with a backslash, which some systems take for a folder's end"),
        ("demo/./a.so", "a path that is not in its plain form"),
        ("demo//a.so", "a path that is not in its plain form"),
        ("demo/..a/b..so", ""),
    ],
)  # fmt: skip
def test_names_that_lead_out_of_the_environment_are_told(member: str, reason: str) -> None:
    assert outside_reason(member) == reason


F = SymbolReference("f")


SHIP = "Ship the library, require the package that has it, or build against the SDK version that is required."


@pytest.mark.parametrize(
    ("requires", "remedy"),
    [
        ((), SHIP),
        (("rocm-sdk-core", 'other; sys_platform == "win32"'), SHIP),
        (
            ("zlib-x", "shiboken6==6.10.1"),
            f"If it is in what demo requires, give that --with: shiboken6, zlib-x. Else: {SHIP}",
        ),
    ],
    ids=["nothing", "the SDK", "what is not at hand"],
)
def test_what_is_missing_may_be_in_requirements_that_are_not_at_hand(requires: tuple[str, ...], remedy: str) -> None:
    audited = tree((package(requires=requires), [library("demo/a.so", "libshiboken6.abi3.so.6.10")]))
    assert [(finding.rule, finding.remedy) for finding in find(audited)] == [("unresolved-library", remedy)]


def test_a_library_for_some_processors_alone_is_missing_on_others() -> None:
    files = (library("demo/a.so", "libb.so", runpath="$ORIGIN"), library("demo/glibc-hwcaps/x86-64-v3/libb.so"))
    (finding,) = find(one(*files))
    assert (finding.rule, finding.found) == (
        "unresolved-library",
        "needs libb.so, which only newer processors find, in demo/glibc-hwcaps/x86-64-v3",
    )
    assert find(one(*files), cpu_level="x86-64-v3") == []


def test_a_library_for_some_processors_alone_is_out_of_reach_where_the_run_path_leads_elsewhere() -> None:
    files = (library("demo/b/u.so", "libb.so"), library("demo/a/glibc-hwcaps/x86-64-v2/libb.so"))
    (finding,) = find(one(*files), cpu_level="x86-64-v3")
    assert finding.rule == "unreachable-library"
    assert finding.remedy.startswith("Add $ORIGIN/../a to its run path when linking")


@pytest.mark.parametrize(
    ("needed", "reference", "is_met"),
    [
        ((), SymbolReference("PyLong_FromLong"), False),
        (("libc.so.6",), SymbolReference("malloc", "GLIBC_2.2.5", "libc.so.6"), True),
        (("libz.so.1",), SymbolReference("deflate"), True),
        (("libz.so.1",), F, False),
        (("libc.so.6", "libm.so.6"), SymbolReference("sin"), False),
        (("libamdhip64.so.7",), SymbolReference("hipMalloc"), True),
        (("libamdhip64.so.7",), SymbolReference("hipMalloc", "hip_4.2", "libamdhip64.so.7"), True),
        (("libamdhip64.so.7",), SymbolReference("new", "V2", "libb.so"), False),
        (("libnothing.so.1",), F, True),
    ],
    ids=str,
)
def test_symbols_of_libraries_that_are_not_at_hand(
    needed: tuple[str, ...], reference: SymbolReference, is_met: bool
) -> None:
    audited = one(library("demo/a.so", *needed, runpath=TO_CORE, references=(reference,)), owner=USES_CORE)
    assert (find(audited, select=("undefined-symbol",)) == []) is is_met


def test_copies_of_what_extension_modules_need_leave_symbols_to_the_interpreter() -> None:
    references = (SymbolReference("PyLong_FromLong"),)
    files = (
        library("demo/a.so", "libb.so.1", runpath="$ORIGIN", exports=("PyInit_a",)),
        library("demo/libb.so.1", references=references),
        library("demo/libb.so", references=references, soname="libb.so.1"),
        library("demo/other.so", references=references),
    )
    assert [f.path for f in find(one(*files), select=("undefined-symbol",))] == ["demo/other.so"]


def test_extension_modules_and_what_they_need_leave_symbols_to_the_interpreter() -> None:
    references = (SymbolReference("PyLong_FromLong"), SymbolReference("_Py_NoneStruct"), SymbolReference("floorf"), F)
    files = (
        library("demo/a.so", "libb.so", runpath="$ORIGIN", exports=("PyInit_a",), references=references),
        library("demo/libb.so", references=references),
    )
    found = [finding.found for finding in find(one(*files), select=("undefined-symbol",))]
    assert found == ["leaves 1 symbols to others, and loads nothing that defines them: f"] * 2


@pytest.mark.parametrize("name", ["demo/core.so", "core.so", "*/core.so", "libelsewhere.so.1"])
def test_symbols_of_what_loads_a_file_can_be_declared(name: str) -> None:
    files = (library("demo/plugin.so", references=(F,)), library("demo/core.so", defines=("f",)))
    assert find(one(*files), loaded_by={"demo/plugin.so": (name,)}) == []


def test_libraries_that_are_opened_by_name_keep_their_symbols_to_themselves() -> None:
    files = (library("demo/a.so", runpath="$ORIGIN", references=(F,)), library("demo/libb.so", defines=("f",)))
    found = find(one(*files), dlopen={"demo/a.so": ("libb.so",)})
    assert [finding.rule for finding in found] == ["undefined-symbol"]


def test_packages_of_one_release_may_use_rpath_among_each_other() -> None:
    assert find(with_core(library("demo/a.so", "libamdhip64.so.7", rpath=TO_CORE))) == []


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
def test_symbols_of_llvm_are_told_by_their_names(symbol: str, rule: str) -> None:
    audited = one(
        library("demo/a.so", "libb.so", runpath="$ORIGIN", exports=(symbol,)),
        library("demo/libb.so", exports=(symbol,)),
    )
    assert [finding.rule for finding in find(audited)] == [rule]


@pytest.mark.parametrize("name", ["/home/me/build/libb.so", "build/libb.so", "./libb.so"])
def test_a_needed_path_is_found_on_the_builders_machine_alone(name: str) -> None:
    (finding,) = find(one(library("demo/a.so", name, runpath="$ORIGIN"), library("demo/libb.so")))
    assert finding.found.startswith(f"needs {name}, which none of the packages, the SDK and the allowed system")


def test_libraries_that_no_process_loads_together_do_not_collide() -> None:
    audited = one(library("demo/a.so", exports=("answer",)), library("demo/b.so", exports=("answer",)))
    assert find(audited) == []


@pytest.mark.parametrize(
    ("second", "found"),
    [
        (code(("gfx90a",)), None),
        (code(("gfx90a:xnack+", "gfx90a:xnack-")), None),
        (code(("gfx90a:xnack+",)), "has no code for gfx90a, for which demo/a.so has some"),
        (code(("gfx942",), is_code_object=True), None),
        (None, None),
    ],
    ids=["the same", "both settings", "one setting", "kernels alone", "no device code"],
)
def test_files_have_code_for_one_set_of_targets(second: DeviceReport | None, found: str | None) -> None:
    other = (
        data("demo/b.co", device=second) if second and second.is_code_object else library("demo/b.so", device=second)
    )
    audited = one(library("demo/a.so", device=code(("gfx90a",))), other)
    findings = find(audited, select=("device-target-uneven",))
    assert [finding.found for finding in findings if finding.file.endswith("b.so")] == ([found] if found else [])


@pytest.mark.parametrize(
    ("bundles", "found"),
    [
        ((("gfx90a",), ("gfx90a:xnack+", "gfx90a:xnack-")), []),
        ((("gfx90a",), ("gfx90a:xnack+",)), ["1 of 2 bundles have no code for gfx90a: 1"]),
        (
            (("gfx1100", "gfx1101"), ("gfx11-generic",), ("gfx11-generic",)),
            ["1 of 3 bundles have no code for gfx11-generic: 0"],
        ),
        ((("gfx906",), ("gfx942",)), ["1 of 2 bundles have no code for gfx906: 1",
                                      "1 of 2 bundles have no code for gfx942: 0"]),
    ],
    ids=["both settings", "one setting", "a generic target", "others"],
)  # fmt: skip
def test_bundles_may_spell_the_same_targets_in_several_ways(
    bundles: tuple[tuple[str, ...], ...], found: list[str]
) -> None:
    findings = find(one(library("demo/a.so", device=code(*bundles))), select=("device-target-missing",))
    assert sorted(finding.found for finding in findings) == found


@pytest.mark.parametrize(
    ("promised", "there", "is_there"),
    [
        ("gfx90a:xnack+", "gfx90a", True),
        ("gfx1100", "gfx11-generic", True),
        ("gfx11-generic", "gfx1100", False),
        ("gfx90a:xnack+", "gfx90a:xnack-", False),
        ("no target", "gfx90a", False),
    ],
)
def test_a_promised_target_is_there_if_other_code_serves_it(promised: str, there: str, is_there: bool) -> None:
    audited = one(library("demo/a.so", device=code((there,))), owner=package(targets=(promised,)))
    found = [] if is_there else [f"promises code for {promised}, and has none"]
    assert [finding.found for finding in find(audited, select=("device-target-absent",))] == found


@pytest.mark.parametrize(("size", "found"), [(5, []), (6, ["soname-clash"])], ids=["copies", "of another size"])
def test_copies_are_told_without_digests(size: int, found: list[str]) -> None:
    files = (
        library("one/a.so", "libx.so", runpath="$ORIGIN"),
        library("two/a.so", "libx.so", runpath="$ORIGIN"),
        library("one/libx.so", sha256=None, size=5),
        library("two/libx.so", sha256=None, size=size),
    )
    assert [finding.rule for finding in find(Tree((), files, is_prefix=True))] == found


def test_libraries_of_the_sdk_may_each_have_targets_of_their_own() -> None:
    files = [library("lib/a.so", device=code(("gfx906",))), library("lib/b.so", device=code(("gfx942",)))]
    rule = ("device-target-uneven",)
    assert find(one(*files, owner=package("rocm-sdk-libraries-gfx94x")), select=rule) == []
    assert len(find(one(*files, owner=package("demo")), select=rule)) == 2


def test_a_target_may_be_carried_as_its_variant_or_by_a_files_name() -> None:
    owner = package("rocm-sdk-device-gfx90a")
    assert find(one(library("lib/a.so", device=code(("gfx90a:xnack+",))), owner=owner)) == []
    assert find(one(data("lib/blas_lib_gfx90a.kpack"), owner=owner)) == []


def test_releases_that_read_no_compressed_code_may_have_it_plain() -> None:
    big = library("demo/a.so", device=code(("gfx906",), size=5_000_000, compressed=False))
    assert find(tree((package(), [big]), (package("rocm-sdk-core", version="6.1.0"), []))) == []


def test_declared_targets_have_to_be_there_with_their_settings() -> None:
    owner = package(targets=("gfx906", "gfx90a:xnack+"))
    found = find(one(library("lib/a.so", device=code(("gfx906", "gfx90a:xnack-"))), owner=owner))
    assert [finding.found for finding in found] == ["promises code for gfx90a:xnack+, and has none"]


def test_a_device_package_may_add_to_the_folder_of_what_it_requires() -> None:
    libraries = package("libs")
    device = package("device", requires=("libs",))
    assert find(tree((libraries, [data("_libs/__init__.py")]), (device, [data("_libs/tuning.py")]))) == []


@pytest.mark.parametrize("marker", ['os_name ~= "posix"', 'python_version ~= "x"'])
def test_a_marker_that_compares_what_has_no_order_is_malformed(marker: str) -> None:
    text = f"other; {marker}"
    found = find(tree((package(requires=(text,)), []), (package("other"), [])))
    assert [(finding.rule, finding.found) for finding in found] == [
        ("metadata-malformed", f"Requires-Dist {text!r} is malformed")
    ]


@pytest.mark.parametrize(
    ("mode", "is_right"),
    [(0o100600, True), (0o100775, True), (0o100644, True), (0o100244, False), (0o100646, False)],
    ids=oct,
)
def test_modes_are_right_that_let_owners_read_and_nobody_else_write(mode: int, is_right: bool) -> None:
    assert (find(one(data("demo/x", mode=mode))) == []) is is_right


def test_any_file_in_the_folder_for_licences_is_one() -> None:
    owner = package(license="", license_files=("LICENSES/MIT.txt",))
    assert find(one(data("demo-1.0.dist-info/licenses/LICENSES/MIT.txt"), owner=owner)) == []


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("utils/__init__.py", "utils.py", "ships utils/__init__.py, which hides utils of two-1.0-{tag}.whl"),
        (
            "utils/__init__.py",
            "utils.cpython-311-x86_64-linux-gnu.so",
            "ships utils/__init__.py, which hides utils of two-1.0-{tag}.whl",
        ),
        ("utils.py", "utils/x.py", "ships the module utils, which hides utils/ of two-1.0-{tag}.whl"),
        ("utils.abi3.so", "utils/x.py", "ships the module utils, which hides utils/ of two-1.0-{tag}.whl"),
        ("utils.py", "utils.txt", ""),
        ("utils/x.py", "utils/y.py", ""),
        ("libutils.so.1", "libutils/x.py", ""),
    ],
)
def test_modules_and_packages_of_one_name_hide_each_other(first: str, second: str, found: str) -> None:
    audited = tree((package("one"), [data(first)]), (package("two"), [data(second)]))
    expected = [("import-clash", f"one-1.0-{TAG}.whl", found.format(tag=TAG))] if found else []
    assert brief(find(audited)) == expected


def installed(*files: InstalledFile, record: tuple[RecordEntry, ...]) -> Tree:
    """Return an environment in ``/env`` with one distribution."""
    owner = package(is_wheel=False, record=record)
    owner = msgspec.structs.replace(owner, source=f"/env/{owner.dist_info}")
    moved = (msgspec.structs.replace(file, source=f"/env/{file.path}", distribution=owner.source) for file in files)
    return Tree((owner,), tuple(moved))


def test_an_installed_record_is_compared_with_what_lies_in_site_packages() -> None:
    rows = (
        RecordEntry("demo/a.py", "sha256=AAAA", "1"),
        RecordEntry("demo/b.py", "", ""),
        RecordEntry("demo/gone.py", "sha256=AAAA", "1"),
        RecordEntry("demo/linked/x.py", "sha256=AAAA", "1"),
        RecordEntry("../../../bin/tool", "sha256=AAAA", "1"),
        RecordEntry("demo/__pycache__/a.cpython-311.pyc", "", ""),
    )
    files = (data("demo/a.py"), data("demo/b.py"), data("demo/unlisted.py"), data("demo/linked", link="/elsewhere"))
    assert [finding.found for finding in find(installed(*files, record=rows), select=("record-wrong",))] == [
        "RECORD has another hash for demo/a.py",
        "RECORD lists demo/gone.py, which is absent",
    ]


def test_record_has_to_match_the_files() -> None:
    rows = (RecordEntry("demo/a.py", "sha256=AAAA", "1"), RecordEntry("demo/gone.py", "", ""))
    found = [finding.found for finding in find(one(data("demo/a.py"), owner=package(record=rows)))]
    assert found == [
        "RECORD doesn't list demo-1.0.dist-info/METADATA",
        "RECORD doesn't list demo-1.0.dist-info/WHEEL",
        "RECORD doesn't list demo-1.0.dist-info/licenses/LICENSE",
        "RECORD has another hash for demo/a.py",
        "RECORD lists demo/gone.py, which is absent",
    ]


@pytest.mark.parametrize(
    ("host", "device", "found"),
    [
        ((AMD_22,), ((AMD_22,),), []),
        ((AMD_22, "GCC: (Debian 12.2.0) 12.2.0"), ((AMD_22,),), []),
        (("clang version 18.1.8", AMD_22), (), [f"clang version 18.1.8 beside device code of {AMD_22}"]),
        (("GCC: (GNU) 12.2.0",), ((AMD_22,),), [f"GCC: (GNU) 12.2.0 beside device code of {AMD_22}"]),
        ((AMD_22,), ((AMD_23,),), [f"{AMD_22} beside device code of {AMD_23}"]),
        ((), ((AMD_23,),), []),
        (("Linker: LLD 18.1.8",), ((AMD_23,),), []),
        (("clang version 18.1.8",), (), []),
    ],
    ids=["one", "start files", "told by the host code", "GCC alone", "two of AMD", "stripped", "linker", "unknown"],
)
def test_host_code_is_compared_with_what_code_objects_name(
    host: tuple[str, ...], device: tuple[tuple[str, ...], ...], found: list[str]
) -> None:
    file = library("demo/a.so", compilers=host, device=code(("gfx906",), compilers=device))
    findings = find(one(file), select=("host-compiler",))
    assert [finding.found for finding in findings] == [f"has host code of {text}" for text in found]


def test_the_compiler_of_device_libraries_is_no_second_one() -> None:
    file = library("demo/a.so", device=code(("gfx906",), compilers=((AMD_22, AMD_23), (AMD_23,))))
    assert find(one(file), select=("device-compilers",)) == []


def test_device_code_is_compared_with_that_of_the_sdk_at_hand() -> None:
    sdk = library("_rocm_sdk_core/lib/libx.so", device=code(("gfx906",), compilers=((AMD_23,),)))
    own = library("demo/a.so", device=code(("gfx906",), compilers=((AMD_22,),)))
    (finding,) = find(tree((USES_CORE, [own]), (CORE, [sdk])), select=("device-compilers",))
    assert finding.found == f"holds device code of {AMD_22} in demo/a.so; the SDK's is of {AMD_23}"
    same = msgspec.structs.replace(own, device=sdk.device)
    assert find(tree((USES_CORE, [same]), (CORE, [sdk])), select=("device-compilers",)) == []


def test_context_is_not_audited_itself() -> None:
    bad = library("_rocm_sdk_core/lib/libamdhip64.so.7", runpath="/home/me", executable_stack=True)
    context = msgspec.structs.replace(CORE, is_context=True)
    user = library("demo/a.so", "libamdhip64.so.7", runpath=TO_CORE)
    assert find(tree((USES_CORE, [user]), (context, [bad]))) == []


def test_an_install_prefix_may_hold_symlinks_and_libraries_of_several_names() -> None:
    files = (
        data("lib/libx.so", link="libx.so.1"),
        library("lib/libx.so.1.0", soname="libx.so.1"),
        data("lib/libx.so.1", link="libx.so.1.0"),
        library("lib/liby.so", "libx.so.1", runpath="$ORIGIN"),
    )
    assert find(Tree((), files, is_prefix=True)) == []


def test_copies_in_a_prefix_are_told_where_links_belong() -> None:
    real = library("lib/libx.so.1", size=5)
    files = (
        real,
        msgspec.structs.replace(real, path="lib/libx.so", source="lib/libx.so"),
        msgspec.structs.replace(real, path="lib/libx.so.0", source="lib/libx.so.0", size=6),
        msgspec.structs.replace(real, path="plugins/libx.so", source="plugins/libx.so"),
    )
    found = [(finding.rule, finding.path, finding.found) for finding in find(Tree((), files, is_prefix=True))]
    assert found == [
        ("duplicate-library", "lib/libx.so", "has the SONAME libx.so.1 of another file of its package"),
    ]


def test_code_objects_and_object_files_are_not_loaded() -> None:
    audited = one(library("demo/k.co", "libnothing.so", machine=224, kind=ElfKind.CODE_OBJECT, soname=None))
    assert find(audited) == []


def test_severities_are_errors_warnings_and_notes_in_that_order() -> None:
    audited = one(library("demo/a.so", runpath="/opt/rocm/lib", executable_stack=True, build_id=None))
    assert [finding.severity for finding in find(audited)] == [Severity.ERROR, Severity.WARNING, Severity.NOTE]


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.name)
def test_the_documentation_has_every_rule_in_its_own_words(rule: Rule) -> None:
    row = f'| <a id="{rule.name}"></a>`{rule.name}` | {rule.severity.value} | {rule.demand} | {rule.remedy} |'
    assert row in (ROOT / "docs/audit.md").read_text().splitlines()


def test_names_of_rules_are_words_with_hyphens() -> None:
    assert all(rule.name.replace("-", "").isalpha() and rule.name == rule.name.lower() for rule in ALL_RULES)
