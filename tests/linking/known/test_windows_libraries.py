"""Who brings which DLL of Windows."""

from __future__ import annotations

import pytest

from rocwheel.environment.known_libraries import DllKind, comes_with_python, find_sdk_dll, is_driver_dll, kind_of_dll


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("KERNEL32.dll", DllKind.SYSTEM),
        ("api-ms-win-crt-heap-l1-1-0.dll", DllKind.SYSTEM),
        ("ext-ms-win-ntuser-window-l1-1-0.dll", DllKind.SYSTEM),
        ("RstrtMgr.DLL", DllKind.SYSTEM),
        ("dbgcore.DLL", DllKind.SYSTEM),
        ("FirewallAPI.dll", DllKind.SYSTEM),
        ("cldapi.dll", DllKind.SYSTEM),
        ("WOFUTIL.dll", DllKind.SYSTEM),
        ("icuuc.dll", DllKind.SYSTEM),
        ("icu.dll", DllKind.SYSTEM),
        ("VCRUNTIME140_1.dll", DllKind.VISUAL_CPP),
        ("VCRUNTIME140_THREADS.dll", DllKind.VISUAL_CPP),
        ("VCRUNTIME140_THREADSD.dll", DllKind.DEBUG),
        ("MSVCP140_ATOMIC_WAIT.dll", DllKind.VISUAL_CPP),
        ("MSVCP140D.dll", DllKind.DEBUG),
        ("ucrtbased.dll", DllKind.DEBUG),
        ("python3.dll", DllKind.PYTHON),
        ("python313t.dll", DllKind.PYTHON),
        ("amdhip64_7.dll", DllKind.DRIVER),
        ("amd_comgr0713.dll", DllKind.DRIVER),
        ("OpenCL.dll", DllKind.DRIVER),
        ("amdxc64.dll", DllKind.DRIVER),
        ("hiprtc07013.dll", None),
        ("rocblas.dll", None),
        ("libgcc_s_seh-1.dll", None),
    ],
)
def test_every_dll_is_of_one_kind_or_for_packages_to_bring(name: str, kind: DllKind | None) -> None:
    assert kind_of_dll(name) is kind
    assert is_driver_dll(name) is (kind is DllKind.DRIVER)


def test_python_brings_two_libraries_of_visual_cpp() -> None:
    assert [name for name in ("vcruntime140.dll", "VCRUNTIME140_1.dll", "msvcp140.dll") if comes_with_python(name)] == [
        "vcruntime140.dll",
        "VCRUNTIME140_1.dll",
    ]


@pytest.mark.parametrize(
    ("name", "distribution"),
    [
        ("amdhip64_7.dll", "rocm-sdk-core"),
        ("hiprtc-builtins07013.dll", "rocm-sdk-core"),
        ("libhipblaslt.dll", "rocm-sdk-libraries"),
        ("MIOpenCKGroupedConv_gfx1151.dll", "rocm-sdk-libraries"),
        ("OpenCL.dll", ""),
        ("torch_cpu.dll", ""),
    ],
)
def test_the_packages_of_rocm_have_their_dlls(name: str, distribution: str) -> None:
    found = find_sdk_dll(name)
    assert (found.distribution if found else "") == distribution
