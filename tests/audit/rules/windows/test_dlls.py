"""Tests of `rocwheel.audit.rules.windows.dlls`."""

from __future__ import annotations

import pytest

from rocwheel.audit.finding import Severity
from tests.support.breaches import Breach, brief, check_breach, one
from tests.support.trees import data, dll, exe, find, package, tree, windows_package

CORE = windows_package("rocm-sdk-core")
LIBRARIES = windows_package("rocm-sdk-libraries", requires=("rocm-sdk-core==1.0",))
HIP = dll("_rocm_sdk_core/bin/amdhip64_7.dll", "KERNEL32.dll", "amd_comgr0713.dll")
COMGR = dll("_rocm_sdk_core/bin/amd_comgr0713.dll", "api-ms-win-crt-runtime-l1-1-0.dll")
STARTS_ROCM = data("demo/__init__.py", mentions=frozenset({"rocm_sdk"}))

BREACHES = {
    "dll-missing": Breach(
        one(dll("demo/a.dll", "KERNEL32.dll", "absent.dll"), owner=windows_package()),
        "demo/a.dll",
        "needs absent.dll, but no package contains this DLL, and neither ROCm nor Windows provides it: loading fails "
        "with error 126, which doesn't name the DLL",
    ),
    "dll-unreachable": Breach(
        one(
            dll("_rocm_sdk_core/bin/a.dll", "plugin.dll"),
            dll("_rocm_sdk_core/lib/plugins/plugin.dll"),
            owner=CORE,
        ),
        "_rocm_sdk_core/bin/a.dll",
        "needs plugin.dll, which is in _rocm_sdk_core/lib/plugins, a folder that Windows doesn't search",
    ),
    "dll-function": Breach(
        one(dll("demo/a.dll", "b.dll", functions=("f", "g", "#7")), dll("demo/b.dll"), owner=windows_package()),
        "demo/a.dll",
        "needs b.dll for g, which demo/b.dll doesn't export",
    ),
    "dll-undeclared": Breach(
        tree((windows_package(), [STARTS_ROCM, dll("demo/a.dll", "amdhip64_7.dll")]), (CORE, [HIP, COMGR])),
        "demo-1.0-py3-none-win_amd64.whl",
        "demo/a.dll loads amdhip64_7.dll from rocm-sdk-core, which its package doesn't require",
    ),
    "dll-redistributable": Breach(
        one(dll("demo/a.dll", "MSVCP140.dll", "VCRUNTIME140.dll"), owner=windows_package()),
        "demo-1.0-py3-none-win_amd64.whl",
        "needs msvcp140.dll from Visual C++ (for demo/a.dll), which Windows doesn't include",
    ),
    "dll-debug-runtime": Breach(
        one(dll("demo/a.dll", "VCRUNTIME140D.dll"), owner=windows_package()),
        "demo/a.dll",
        "needs VCRUNTIME140D.dll, which exists only on machines with Visual Studio",
    ),
    "dll-from-driver": Breach(
        tree((CORE, [HIP, COMGR, exe("_rocm_sdk_core/lib/llvm/bin/tool.exe", "amdhip64_7.dll")])),
        "_rocm_sdk_core/lib/llvm/bin/tool.exe",
        "loads AMD's driver DLL amdhip64_7.dll from System32, if it exists, instead of "
        "_rocm_sdk_core/bin/amdhip64_7.dll",
    ),
    "dll-of-driver": Breach(
        one(dll("demo/OpenCL.dll"), owner=windows_package()),
        "demo/OpenCL.dll",
        "has the name of a DLL that AMD's driver installs in System32: loading it by name may load the driver's DLL",
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_of_a_rule_is_the_only_finding(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


def test_dlls_that_the_loader_finds_are_not_reported() -> None:
    sparse = dll("_rocm_sdk_libraries/bin/rocsparse.dll", "AMDHIP64_7.dll", "kernel32.dll", "VCRUNTIME140.dll")
    assert find(tree((LIBRARIES, [sparse]), (CORE, [HIP, COMGR]))) == []


def test_an_sdk_dll_is_assumed_to_be_installed_except_in_a_closed_set() -> None:
    framework = one(dll("torch/lib/torch_hip.dll", "rocblas.dll", "amdhip64_7.dll"), owner=windows_package("torch"))
    assert [finding.rule for finding in find(framework, select=("dll-missing",))] == []
    assert [finding.rule for finding in find(framework, closed=True)] == ["dll-missing", "dll-from-driver"]


def test_the_package_of_an_assumed_sdk_dll_must_be_required() -> None:
    files = dll("demo/a.dll", "rocblas.dll", "amdhip64_7.dll")
    assert brief(find(one(files, owner=windows_package()))) == [
        (
            "dll-undeclared",
            "demo-1.0-py3-none-win_amd64.whl",
            "demo/a.dll loads rocblas.dll from rocm-sdk-libraries, which its package doesn't require",
        )
    ]
    assert find(one(files, owner=windows_package(requires=("rocm-sdk-libraries",)))) == []


def test_dlls_declared_as_opened_by_name_are_checked() -> None:
    hip = dll("_rocm_sdk_core/bin/amdhip64_7.dll")
    settings = {"dlopen": {"*/amdhip64_7.dll": ("rocm_kpack.dll",)}}
    (finding,) = find(one(hip, owner=CORE), **settings)
    assert (finding.rule, finding.severity) == ("dll-missing", Severity.ERROR)
    assert finding.found.startswith("opens rocm_kpack.dll by name, but no package contains this DLL")
    assert find(one(hip, dll("_rocm_sdk_core/bin/rocm_kpack.dll"), owner=CORE), **settings) == []


def test_extension_modules_may_import_from_each_other() -> None:
    assert find(one(dll("demo/a.pyd", "B.pyd"), dll("demo/b.pyd"), owner=windows_package())) == []


def test_a_missing_delay_loaded_dll_is_a_warning() -> None:
    (finding,) = find(one(dll("demo/a.dll", delayed=("late.dll",)), owner=windows_package()))
    assert (finding.rule, finding.severity) == ("dll-missing", Severity.WARNING)
    assert finding.found.startswith("delay-loads late.dll, but no package contains this DLL")


def test_a_dll_for_another_machine_does_not_satisfy_an_import() -> None:
    audited = one(dll("demo/a.dll", "b.dll"), dll("demo/b.dll", machine=0xAA64), owner=windows_package())
    assert brief(find(audited, ignore=["wrong-machine"])) == [
        ("dll-missing", "demo/a.dll", "needs b.dll, but the DLL in demo is for ARM64")
    ]


def test_a_damaged_dll_is_reported_once_and_not_as_missing() -> None:
    damaged = data("demo/B.dll", problem="is truncated")
    audited = one(dll("demo/a.dll", "b.dll"), dll("demo/c.dll", "b.dll"), damaged, owner=windows_package())
    assert brief(find(audited)) == [("unreadable-binary", "demo/B.dll", "is truncated")]


def test_a_damaged_copy_does_not_hide_an_unreachable_dll() -> None:
    damaged = data("_rocm_sdk_core/x/plugin.dll", problem="is truncated")
    user, whole = dll("_rocm_sdk_core/bin/a.dll", "plugin.dll"), dll("_rocm_sdk_core/lib/plugin.dll")
    rules = [finding.rule for finding in find(one(user, whole, damaged, owner=CORE))]
    assert rules == ["dll-unreachable", "unreadable-binary"]


def test_missing_mingw_runtime_dlls_have_their_own_remedy() -> None:
    (finding,) = find(one(dll("demo/a.dll", "libgcc_s_seh-1.dll"), owner=windows_package()))
    assert finding.remedy.startswith("Link with -static-libgcc")


def test_a_missing_dll_may_be_in_a_required_package_that_was_not_given() -> None:
    owner = windows_package(requires=("helper",))
    (finding,) = find(one(dll("demo/a.dll", "helper.dll"), owner=owner))
    assert (finding.rule, finding.severity) == ("dll-missing", Severity.WARNING)
    assert finding.found == (
        "needs helper.dll, which no given package contains; it may be in helper, which demo requires but which was "
        "not given"
    )
    assert finding.remedy == "Add it with --with, or use --with-requirements."


def test_a_dll_missing_from_all_given_requirements_is_an_error() -> None:
    audited = tree(
        (windows_package(requires=("helper",)), [dll("demo/a.dll", "helper.dll")]),
        (windows_package("helper", is_context=True), []),
    )
    (finding,) = find(audited)
    assert (finding.rule, finding.severity) == ("dll-missing", Severity.ERROR)


def test_a_program_finds_dlls_only_in_its_own_folder() -> None:
    audited = tree(
        (CORE, [exe("_rocm_sdk_core/lib/llvm/bin/tool.exe", "helper.dll"), dll("_rocm_sdk_core/bin/helper.dll")])
    )
    (finding,) = find(audited)
    assert (finding.rule, finding.severity) == ("dll-unreachable", Severity.WARNING)
    assert finding.remedy.startswith("Put the program and the DLL into one folder")


def test_dll_folders_from_the_settings_are_searched() -> None:
    audited = one(dll("demo/a.dll", "b.dll"), dll("demo.libs/b.dll"), owner=windows_package())
    (finding,) = find(audited)
    assert (finding.rule, finding.severity) == ("dll-unreachable", Severity.WARNING)
    assert find(audited, dll_folders=("*.libs",)) == []


def test_a_package_that_calls_add_dll_directory_is_trusted() -> None:
    source = data("demo/__init__.py", mentions=frozenset({"add_dll_directory"}))
    audited = one(source, dll("demo/a.dll", "b.dll"), dll("demo.libs/b.dll"), owner=windows_package())
    assert find(audited) == []


def test_a_dll_named_in_the_sources_of_a_package_is_opened_before_its_users() -> None:
    for mentioned, is_found in (("B.dll", True), ("c.dll", False)):
        source = data("demo/__init__.py", mentions=frozenset({mentioned}))
        audited = one(source, dll("demo/a.pyd", "b.dll"), dll("demo/.libs/b.dll"), owner=windows_package())
        assert [finding.rule for finding in find(audited)] == ([] if is_found else ["dll-unreachable"])


def test_a_package_must_tell_windows_about_the_rocm_folders() -> None:
    owner = windows_package(requires=("rocm-sdk-core",))
    files = [dll("demo/a.dll", "helper.dll", "amdhip64_7.dll")]
    core = (CORE, [HIP, COMGR, dll("_rocm_sdk_core/bin/helper.dll")])
    assert find(tree((owner, [STARTS_ROCM, *files]), core)) == []
    silent = find(tree((owner, files), core))
    assert [(finding.rule, finding.severity) for finding in silent] == [
        ("dll-from-driver", Severity.WARNING),
        ("dll-unreachable", Severity.WARNING),
    ]
    assert silent[1].remedy.startswith("In the package, call rocm_sdk.initialize_process")


def test_folders_added_by_a_required_package_are_also_searched() -> None:
    torch = (
        windows_package("torch", requires=("rocm-sdk-core",)),
        [data("torch/__init__.py", mentions=frozenset({"rocm_sdk"}))],
    )
    owner = windows_package(requires=("torch", "rocm-sdk-core"))
    assert find(tree((owner, [dll("demo/a.dll", "amdhip64_7.dll")]), torch, (CORE, [HIP, COMGR]))) == []


def test_missing_delay_loaded_functions_are_warnings_and_ordinals_are_ignored() -> None:
    late = one(dll("demo/a.dll", delayed=("b.dll",), functions=("g",)), dll("demo/b.dll"), owner=windows_package())
    assert [(finding.rule, finding.severity) for finding in find(late)] == [("dll-function", Severity.WARNING)]
    numbers = one(dll("demo/a.dll", "b.dll", functions=("#1",)), dll("demo/b.dll"), owner=windows_package())
    assert find(numbers) == []


def test_dlls_allowed_in_the_settings_are_not_missing() -> None:
    audited = one(dll("demo/a.dll", "nvcuda.dll"), owner=windows_package())
    assert find(audited, system_libraries=("NVCUDA.dll",)) == []


def test_dlls_next_to_linux_files_are_not_checked() -> None:
    owner, rules = package("demo", tag="py3-none-any"), ("dll-missing",)
    audited = one(dll("demo/a.dll", "absent.dll"), owner=owner)
    assert find(tree((package("other"), [data("other/x")]), (owner, [*audited.files[:1]])), select=rules) == []
    assert [finding.rule for finding in find(audited, select=rules)] == ["dll-missing"]


def test_a_program_cannot_rely_on_the_runtime_dlls_that_come_with_python() -> None:
    audited = one(exe("demo/a.exe", "vcruntime140.dll"), owner=windows_package())
    assert [finding.rule for finding in find(audited)] == ["dll-redistributable"]


def test_a_runtime_dll_bundled_next_to_the_file_is_accepted() -> None:
    assert find(one(dll("demo/a.dll", "msvcp140.dll"), dll("demo/msvcp140.dll"), owner=windows_package())) == []


def test_a_dll_that_only_the_driver_installs_is_reported() -> None:
    audited = one(dll("demo/a.dll", "amd_comgr_2.dll"), owner=windows_package())
    assert brief(find(audited, closed=True)) == [
        (
            "dll-from-driver",
            "demo/a.dll",
            "needs amd_comgr_2.dll, which no package contains: only AMD's driver installs it, and its version varies",
        )
    ]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("amd_comgr_2.dll", "Require the ROCm package that contains the DLL."),
        ("amdxc64.dll", "Load the DLL only if it exists."),
    ],
)
def test_the_remedy_depends_on_whether_a_rocm_package_contains_the_dll(name: str, remedy: str) -> None:
    [finding] = find(one(dll("demo/a.dll", name), owner=windows_package()), closed=True)
    assert finding.remedy == remedy


@pytest.mark.parametrize("closed", [True, False])
def test_the_opencl_loader_comes_with_any_driver_and_is_accepted(closed: bool) -> None:
    assert find(one(dll("demo/a.dll", "OpenCL.dll"), owner=windows_package()), closed=closed) == []
