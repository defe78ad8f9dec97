"""DLLs that Visual C++ and AMD's driver bring."""

from __future__ import annotations

import pytest

from tests.audit.rules.windows.test_dlls import COMGR, CORE, HIP
from tests.support.breaches import Breach, brief, check_breach, one
from tests.support.trees import dll, exe, find, tree, windows_package

BREACHES = {
    "dll-redistributable": Breach(
        one(dll("demo/a.dll", "MSVCP140.dll", "VCRUNTIME140.dll"), owner=windows_package()),
        "demo-1.0-py3-none-win_amd64.whl",
        "needs msvcp140.dll of Visual C++ (demo/a.dll does), which Windows doesn't have",
    ),
    "dll-debug-runtime": Breach(
        one(dll("demo/a.dll", "VCRUNTIME140D.dll"), owner=windows_package()),
        "demo/a.dll",
        "needs VCRUNTIME140D.dll, which only machines with Visual Studio have",
    ),
    "dll-from-driver": Breach(
        tree((CORE, [HIP, COMGR, exe("_rocm_sdk_core/lib/llvm/bin/tool.exe", "amdhip64_7.dll")])),
        "_rocm_sdk_core/lib/llvm/bin/tool.exe",
        "loads amdhip64_7.dll of AMD's driver from System32, if there is one, not _rocm_sdk_core/bin/amdhip64_7.dll",
    ),
    "dll-of-driver": Breach(
        one(dll("demo/OpenCL.dll"), owner=windows_package()),
        "demo/OpenCL.dll",
        "has the name of a DLL that AMD's driver puts into System32: who loads it by that name may get the driver's",
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_is_found_and_nothing_else(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


def test_a_program_has_no_python_that_brings_the_run_time() -> None:
    audited = one(exe("demo/a.exe", "vcruntime140.dll"), owner=windows_package())
    assert [finding.rule for finding in find(audited)] == ["dll-redistributable"]


def test_a_run_time_that_is_shipped_beside_the_file_is_no_finding() -> None:
    assert find(one(dll("demo/a.dll", "msvcp140.dll"), dll("demo/msvcp140.dll"), owner=windows_package())) == []


def test_only_the_driver_may_have_a_dll_that_no_package_has() -> None:
    audited = one(dll("demo/a.dll", "amd_comgr_2.dll"), owner=windows_package())
    assert brief(find(audited, closed=True)) == [
        (
            "dll-from-driver",
            "demo/a.dll",
            "needs amd_comgr_2.dll, which no package has: only AMD's driver brings it, in whichever version",
        )
    ]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("amd_comgr_2.dll", "Require the package of ROCm's that has it."),
        ("amdxc64.dll", "Load it only where it is there."),
    ],
)
def test_what_to_do_depends_on_whether_rocm_has_a_package_with_it(name: str, remedy: str) -> None:
    [finding] = find(one(dll("demo/a.dll", name), owner=windows_package()), closed=True)
    assert finding.remedy == remedy


@pytest.mark.parametrize("closed", [True, False])
def test_the_loader_of_opencl_comes_with_any_driver_and_is_no_finding(closed: bool) -> None:
    assert find(one(dll("demo/a.dll", "OpenCL.dll"), owner=windows_package()), closed=closed) == []
