"""Tests of `rocwheel.audit.rules.needed_libraries`."""

from __future__ import annotations

import msgspec
import pytest

from rocwheel.audit.finding import Severity
from rocwheel.binary.elf.facts import ElfKind
from rocwheel.binary.elf.symbols import SymbolReference
from rocwheel.environment.tree import Tree
from tests.support.breaches import CORE, TO_CORE, USES_CORE, Breach, brief, check_breach, one, with_core
from tests.support.trees import data, find, library, package, program, tree

SHIP = "Ship the library, require the package that provides it, or build against the required SDK version."
OUT_OF_REACH = (
    "but its run path doesn't lead there: the library loads only with LD_LIBRARY_PATH, or if it is already in memory"
)
ABSENT = "but neither the packages, the SDK, nor the allowed system libraries include it"

F = SymbolReference("f")

BREACHES = {
    "unresolved-library": Breach(
        with_core(library("demo/a.so", "libfoo.so.1")),
        "demo/a.so",
        "needs libfoo.so.1, but neither the packages, the SDK, nor the allowed system libraries include it",
    ),
    "unreachable-library": Breach(
        with_core(library("demo/a.so", "libamdhip64.so.7", runpath="$ORIGIN")),
        "demo/a.so",
        "needs libamdhip64.so.7, which is in _rocm_sdk_core/lib, but its run path doesn't lead there: the library "
        "loads only with LD_LIBRARY_PATH, or if it is already in memory",
    ),
    "inherited-run-path": Breach(
        one(
            library("demo/a.so", "libb.so", rpath="$ORIGIN/lib"),
            library("demo/lib/libb.so", "libc.so"),
            library("demo/lib/libc.so"),
        ),
        "demo/lib/libb.so",
        "finds libc.so only through the RPATH of a file that loads it",
    ),
    "unresolved-dlopen": Breach(
        with_core(library("demo/a.so")),
        "demo/a.so",
        "opens libamdhip64.so.7 at run time, but its run path doesn't lead there",
        {"dlopen": {"demo/*.so": ("libamdhip64.so.7",)}},
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_of_a_rule_is_the_only_finding(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


def test_a_library_missing_from_a_context_package_is_reported_once_per_user() -> None:
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


def test_the_assumed_sdk_covers_every_machine() -> None:
    files = [
        library(f"demo/{machine}.so", "libamdhip64.so.7", runpath=TO_CORE, machine=machine) for machine in (62, 183)
    ]
    assert find(one(*files, owner=USES_CORE), ignore=("wrong-machine",)) == []


NEWER = (
    "needs libamd_smi.so.99, which is from a newer ROCm version than rocwheel's list of SDK libraries (ROCm 7 and 10): "
    "add rocm-sdk-core of that version with --with"
)


def test_a_library_from_a_newer_rocm_than_in_the_table_is_a_warning() -> None:
    owner = package(requires=("rocm-sdk-core",))
    (finding,) = find(one(library("demo/a.so", "libamd_smi.so.99", runpath=TO_CORE), owner=owner))
    assert (finding.rule, finding.severity, finding.found) == ("unresolved-library", Severity.WARNING, NEWER)
    assert (
        finding.remedy
        == "With the correct wheel of rocm-sdk-core, the audit can check whether the file finds the library."
    )


@pytest.mark.parametrize("soname", ["libamd_smi.so.25", "libnowhere.so.99"])
def test_an_older_or_unknown_library_is_an_error(soname: str) -> None:
    owner = package(requires=("rocm-sdk-core",))
    (finding,) = find(one(library("demo/a.so", soname, runpath=TO_CORE), owner=owner))
    assert finding.severity is Severity.ERROR


def test_a_newer_library_missing_from_the_given_sdk_is_an_error() -> None:
    (finding,) = find(with_core(library("demo/a.so", "libamd_smi.so.99", runpath=TO_CORE)))
    assert (finding.rule, finding.severity) == ("unresolved-library", Severity.ERROR)


def test_the_assumed_sdk_has_libraries_from_rocm_10_and_rocm_7() -> None:
    owner = package(requires=("rocm-sdk-core",))
    audited = one(library("demo/a.so", "libamd_smi.so.27", "libamdhip64.so.7", runpath=TO_CORE), owner=owner)
    assert find(audited) == []


def test_the_assumed_sdk_is_located_in_the_folders_of_its_packages() -> None:
    owner = package(requires=("rocm-sdk-core", "rocm-sdk-libraries"))
    entries = f"{TO_CORE}:$ORIGIN/../_rocm_sdk_libraries/lib"
    audited = one(library("demo/a.so", "libamdhip64.so.7", "libMIOpen.so.1", runpath=entries), owner=owner)
    assert find(audited) == []


def test_a_given_sdk_package_replaces_the_assumed_contents() -> None:
    user = library("demo/a.so", "libamdhip64.so.7", runpath=TO_CORE)
    assert find(one(user, owner=USES_CORE)) == []
    assert [finding.rule for finding in find(tree((USES_CORE, [user]), (CORE, [])))] == ["unresolved-library"]


def test_in_a_closed_set_an_sdk_that_was_not_given_is_absent() -> None:
    audited = one(library("demo/a.so", "libamdhip64.so.7", runpath=TO_CORE))
    assert [finding.rule for finding in find(audited, closed=True, select=("unresolved-*",))] == ["unresolved-library"]
    assert find(audited, select=("unresolved-*",)) == []


def test_an_absolute_entry_that_may_help_on_the_build_machine_is_named() -> None:
    (_, finding) = sorted(find(one(library("demo/a.so", "libfoo.so.1", runpath="/opt/rocm/lib"))), key=lambda f: f.rule)
    assert finding.found.endswith(
        " include it (the file finds the library only on hosts that have it in /opt/rocm/lib)"
    )


def test_another_version_of_the_library_in_the_sdk_is_named() -> None:
    (finding,) = find(one(library("demo/a.so", "libamdhip64.so.6")))
    assert finding.found.endswith(" include it; the packages and the SDK have different versions: libamdhip64.so.7")


@pytest.mark.parametrize(
    "requires", [(), ("rocm-sdk-core", 'other; sys_platform == "win32"'), ("beside",)], ids=["none", "the SDK", "given"]
)
def test_a_missing_library_is_an_error_if_all_requirements_are_known(requires: tuple[str, ...]) -> None:
    user = library("demo/a.so", "libshiboken6.abi3.so.6.10")
    audited = tree((package(requires=requires), [user]), (package("beside", is_context=True), []))
    (finding,) = find(audited)
    assert (finding.rule, finding.severity, finding.remedy) == ("unresolved-library", Severity.ERROR, SHIP)
    assert finding.found == (
        "needs libshiboken6.abi3.so.6.10, but neither the packages, the SDK, nor the allowed system libraries "
        "include it"
    )


@pytest.mark.parametrize(
    ("requires", "where", "remedy"),
    [
        (
            ("zlib-x", "numpy==2.0"),
            "numpy, zlib-x, which demo requires but which were not given",
            "Add them with --with, or use --with-requirements: numpy, zlib-x.",
        ),
        (
            ("numpy",),
            "numpy, which demo requires but which was not given",
            "Add it with --with, or use --with-requirements.",
        ),
    ],
    ids=["two", "one"],
)
def test_a_missing_library_may_be_in_a_requirement_that_was_not_given(
    requires: tuple[str, ...], where: str, remedy: str
) -> None:
    owner = package(requires=requires)
    (finding,) = find(one(library("demo/a.so", "libodd.so.1"), owner=owner))
    assert (finding.rule, finding.severity, finding.remedy) == ("unresolved-library", Severity.WARNING, remedy)
    assert finding.found == f"needs libodd.so.1, which no given package contains; it may be in {where}"
    opener = one(library("demo/a.so"), owner=owner)
    (finding,) = find(opener, dlopen={"*": ("libodd.so.1",)})
    assert (finding.rule, finding.severity, finding.remedy) == ("unresolved-dlopen", Severity.WARNING, remedy)
    assert finding.found == f"opens libodd.so.1 at run time, which no given package contains; it may be in {where}"


def test_in_a_closed_set_a_missing_library_is_always_an_error() -> None:
    audited = one(library("demo/a.so", "libodd.so.1"), owner=package(requires=("numpy",)))
    (finding,) = find(audited, closed=True, select=("unresolved-library",))
    assert finding.severity is Severity.ERROR


def test_a_library_only_for_newer_cpus_is_missing_on_other_cpus() -> None:
    files = (library("demo/a.so", "libb.so", runpath="$ORIGIN"), library("demo/glibc-hwcaps/x86-64-v3/libb.so"))
    (finding,) = find(one(*files))
    assert (finding.rule, finding.found) == (
        "unresolved-library",
        "needs libb.so, but only newer CPUs find the library (in demo/glibc-hwcaps/x86-64-v3)",
    )
    assert find(one(*files), cpu_level="x86-64-v3") == []


@pytest.mark.parametrize("name", ["/home/me/build/libb.so", "build/libb.so", "./libb.so"])
def test_a_needed_path_is_found_only_on_the_build_machine(name: str) -> None:
    (finding,) = find(one(library("demo/a.so", name, runpath="$ORIGIN"), library("demo/libb.so")))
    assert finding.found.startswith(f"needs {name}, but neither the packages, the SDK, nor the allowed")


def test_code_objects_and_object_files_are_not_loaded() -> None:
    audited = one(library("demo/k.co", "libnothing.so", machine=224, kind=ElfKind.CODE_OBJECT, soname=None))
    assert find(audited) == []


@pytest.mark.parametrize(
    ("soname", "words"),
    [
        ("libcuda.so.1", "NVIDIA's driver"),
        ("libnvidia-ml.so.1", "NVIDIA's driver"),
        ("libOpenCL.so.1", "the system's OpenCL loader or a driver"),
        ("libze_loader.so.1", "Intel's driver"),
        ("libvulkan.so.1", "the system's Vulkan loader"),
    ],
)
@pytest.mark.parametrize("requires", [("torch",), ()])
@pytest.mark.parametrize("closed", [True, False])
def test_a_driver_library_is_a_note_and_not_attributed_to_torch_or_rocm(
    soname: str, words: str, requires: tuple[str, ...], *, closed: bool
) -> None:
    audited = one(library("demo/a.so", soname), owner=package(requires=requires))
    (finding,) = find(audited, closed=closed, ignore=("requirement-*",))
    assert (finding.rule, finding.severity) == ("unresolved-library", Severity.NOTE)
    assert finding.found == f"needs {soname}, which is part of {words}"


def test_the_opencl_loader_in_rocm_serves_only_packages_that_require_it() -> None:
    rocm = (package("rocm-sdk-core"), [library("_rocm_sdk_core/lib/libOpenCL.so.1")])
    other, own = library("demo/a.so", "libOpenCL.so.1"), library("demo/a.so", "libOpenCL.so.1", "libamdhip64.so.7")
    assert [f.severity for f in find(tree((package(), [other]), rocm))] == [Severity.NOTE]
    (finding,) = find(tree((USES_CORE, [other]), rocm))
    assert (finding.rule, finding.severity) == ("unreachable-library", Severity.ERROR)
    assert [f.rule for f in find(one(own, owner=USES_CORE))] == ["unreachable-library", "unreachable-library"]


def test_a_driver_library_inside_the_package_must_be_reachable() -> None:
    files = [library("demo/a.so", "libze_loader.so.1"), library("demo/libs/libze_loader.so.1")]
    (finding,) = find(one(*files))
    assert (finding.rule, finding.severity) == ("unreachable-library", Severity.ERROR)


def test_a_package_whose_run_path_leads_to_the_sdk_has_no_findings() -> None:
    audited = with_core(
        library("demo/a.so", "libamdhip64.so.7", "libb.so", "libc.so.6", runpath=f"$ORIGIN:{TO_CORE}"),
        library("demo/libb.so", "libm.so.6"),
        data("demo/__init__.py"),
    )
    assert find(audited) == []


def test_a_library_that_another_file_happens_to_load_first_is_out_of_reach() -> None:
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


def test_an_inherited_entry_is_reported_even_if_the_library_was_loaded_before() -> None:
    audited = one(
        library("demo/a.so", "libb.so", "libc.so", rpath="$ORIGIN/lib"),
        library("demo/lib/libb.so", "libc.so"),
        library("demo/lib/libc.so"),
    )
    assert [finding.rule for finding in find(audited)] == ["inherited-run-path"]


def test_a_library_may_rely_on_libraries_that_all_of_its_loaders_load_first() -> None:
    b, c = library("demo.libs/libb.so", "libc.so", runpath="$ORIGIN/lib"), library("demo.libs/libc.so")
    first = library("demo/a.so", "libb.so", "libc.so", rpath="$ORIGIN/../demo.libs", exports=("PyInit_a",))
    second = library("demo/d.so", "libb.so", rpath="$ORIGIN/../demo.libs", exports=("PyInit_d",))
    (finding,) = find(one(first, b, c), select=("un*", "inherited-*"))
    assert (finding.rule, finding.path) == ("inherited-run-path", b.source)
    assert (
        finding.found
        == "finds libc.so only because each extension module that loads this file has already loaded the library"
    )
    found = find(one(first, second, b, c), select=("un*", "inherited-*"))
    assert [(finding.rule, finding.path) for finding in found] == [("unreachable-library", b.source)]


def test_a_library_found_in_the_folder_of_a_link_is_not_inherited() -> None:
    files = (
        library("lib/real.so", "libx.so", runpath="$ORIGIN"),
        data("bin/real.so", link="../lib/real.so"),
        library("bin/libx.so"),
        library("bin/a.so", "real.so", runpath="$ORIGIN"),
    )
    assert [finding.rule for finding in find(Tree((), files, is_prefix=True))] == ["unreachable-library"]


def test_a_run_path_inherited_from_one_user_does_not_help_another_user() -> None:
    sdk = [library("_sdk/libx.so", "liby.so"), library("_sdk/deep/liby.so")]
    entries = "$ORIGIN/../_sdk:$ORIGIN/../_sdk/deep"
    users = [library("demo/a.so", "libx.so", rpath=entries), library("demo/b.so", "libx.so", runpath=entries)]
    audited = tree((package(requires=("sdk==1.0",)), users), (package("sdk", is_context=True), sdk))
    found = find(audited, select=("un*", "inherited-*"))
    assert [(finding.rule, finding.path) for finding in found] == [("unreachable-library", "demo/b.so")]


def test_programs_in_a_wheel_find_libraries_next_to_the_interpreter() -> None:
    tool = program("../../../bin/tool", "libx.so.1", runpath="$ORIGIN/../lib", references=(F,))
    x = library(
        "../../../lib/libx.so.1", "libamdhip64.so.7", runpath="$ORIGIN/python3.11/site-packages/_rocm_sdk_core/lib"
    )
    for tag, rules in (
        ("cp311-cp311", []),
        ("cp312-cp312", ["unreachable-library", "run-path-build-folder"]),
        ("py3-none", ["unreachable-library"]),
    ):
        owner = package(requires=("rocm-sdk-core",), tag=f"{tag}-manylinux_2_17_x86_64")
        audited = with_core(tool, msgspec.structs.replace(x, traits=library("x", defines=("f",)).traits), owner=owner)
        assert [found.rule for found in find(audited, ignore=("record-wrong", "path-outside"))] == rules


def test_a_wheel_may_have_programs_and_libraries_only_in_its_data_folder() -> None:
    tool = program("../../../bin/tool", "libx.so.1", runpath="$ORIGIN/../lib")
    found = find(one(tool, library("../../../lib/libx.so.1")), ignore=("record-wrong", "path-outside"))
    assert found == []


def test_a_library_at_the_top_of_site_packages_gets_a_location_and_a_remedy() -> None:
    files = [library("demo/_ext.so", "libfoo.so.1"), library("libfoo.so.1")]
    (found,) = find(tree((package(), files)), select=("unreachable-library",))
    assert (found.found.partition(",")[2], found.remedy.partition(" to ")[0]) == (
        f" which is in the top folder, {OUT_OF_REACH}",
        "Add $ORIGIN/..",
    )


def test_a_dlopen_name_in_no_package_gets_no_run_path_advice() -> None:
    audited = one(library("demo/a.so"), library("demo/libs/libthere.so"))
    names = {"demo/a.so": ("libthere.so", "libnowhere.so")}
    found = find(audited, dlopen=names, select=("unresolved-dlopen",))
    assert [(f.found, f.remedy.partition(" ")[0]) for f in found] == [
        (
            (
                "opens libnowhere.so at run time, but neither the packages, the SDK, nor the allowed system "
                "libraries include it"
            ),
            "Ship",
        ),
        ("opens libthere.so at run time, but its run path doesn't lead there", "Link"),
    ]


def test_an_sdk_library_in_another_folder_of_its_package_is_not_found() -> None:
    audited = one(library("demo/a.so", "librocm_sysdeps_drm.so.2", runpath=TO_CORE), owner=USES_CORE)
    (finding,) = find(audited)
    assert finding.rule == "unreachable-library"
    assert finding.found.startswith("needs librocm_sysdeps_drm.so.2, which is in _rocm_sdk_core/lib/rocm_sysdeps/lib,")
    assert finding.remedy.startswith("Add $ORIGIN/../_rocm_sdk_core/lib/rocm_sysdeps/lib to its run path")


def test_a_library_for_newer_cpus_is_unreachable_outside_the_run_path() -> None:
    files = (library("demo/b/u.so", "libb.so"), library("demo/a/glibc-hwcaps/x86-64-v2/libb.so"))
    (finding,) = find(one(*files), cpu_level="x86-64-v3")
    assert finding.rule == "unreachable-library"
    assert finding.remedy.startswith("Add $ORIGIN/../a to its run path when linking")


def test_a_torch_library_is_attributed_to_torch_without_a_requirement() -> None:
    (finding,) = find(one(library("demo/_C.so", "libtorch_hip.so")))
    assert brief([finding]) == [
        ("unreachable-library", "demo/_C.so", f"needs libtorch_hip.so, which is in torch/lib, {OUT_OF_REACH}")
    ]
    expected = "Require torch, and add $ORIGIN/../torch/lib to its run path when linking. 'rocwheel repair' does both."
    assert finding.remedy == expected


def test_a_wheel_with_a_run_path_to_torch_lacks_only_the_requirement() -> None:
    (finding,) = find(one(library("demo/_C.so", "libtorch.so", "libc10.so", runpath="$ORIGIN/../torch/lib")))
    assert (finding.rule, finding.found) == (
        "undeclared-requirement",
        "demo/_C.so loads libtorch.so from torch, which its package doesn't require",
    )


@pytest.mark.parametrize("name", ["libtorch.so", "libc10_hip.so"])
def test_in_a_closed_set_torch_is_absent(name: str) -> None:
    (finding,) = find(one(library("demo/_C.so", name)), closed=True)
    assert (finding.rule, finding.found) == (
        "unresolved-library",
        f"needs {name}, but neither the packages, the SDK, nor the allowed system libraries include it",
    )


@pytest.mark.parametrize(
    ("needed", "judged"),
    [
        (("libamdhip64.so.7",), ""),
        (("libamdhip64.so.7", "libcudart.so.12"), "CUDA because of libcudart.so.12"),
        (
            ("libamdhip64.so.7", "libhipblas.so.2"),
            "another version of ROCm because of libhipblas.so.2 (the SDK has libhipblas.so.3)",
        ),
    ],
)
def test_the_remedy_names_the_repair_command_that_adds_the_sdk_path(needed: tuple[str, ...], judged: str) -> None:
    (finding,) = find(one(library("demo/a.so", *needed)), select=("unreachable-library",))
    default = "without this option, a repair uses the system's libraries"
    option = f"'rocwheel repair --toolkit sdk' (the wheel is for {judged}; {default})"
    run = option if judged else "'rocwheel repair'"
    assert finding.remedy == f"Add $ORIGIN/../_rocm_sdk_core/lib to its run path when linking, or run {run}."


def test_any_repair_leads_a_wheel_for_another_toolkit_to_its_own_libraries() -> None:
    files = [library("demo/a.so", "libb.so", "libcudart.so.12"), library("demo/lib/libb.so")]
    (finding,) = find(one(*files), select=("unreachable-library",))
    assert finding.remedy == "Add $ORIGIN/lib to its run path when linking, or run 'rocwheel repair'."


def test_the_remedy_for_opened_and_inherited_libraries_names_the_right_repair() -> None:
    files = [
        library("demo/a.so", "libb.so", "libcudart.so.12", rpath=f"$ORIGIN/lib:{TO_CORE}"),
        library("demo/lib/libb.so", "libamdhip64.so.7", rpath="$ORIGIN"),
        library("demo/c.so"),
    ]
    opened = {"demo/c.so": ("libhsa-runtime64.so.1",)}
    found = find(one(*files), select=("inherited-run-path", "unresolved-dlopen"), dlopen=opened)
    command = (
        "'rocwheel repair --toolkit sdk' (the wheel is for CUDA because of libcudart.so.12; without this option, a "
        "repair uses the system's libraries)"
    )
    link = f"Link with the run path that 'rocwheel runpath for' prints, or run {command}."
    assert {finding.rule: finding.remedy for finding in found} == {
        "inherited-run-path": link,
        "unresolved-dlopen": link,
    }
