"""DLLs of the packages on Windows: folders, order, and what is said when one can't be loaded."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

import pytest

from tests.sdk.installed import FROM_INDEX
from tests.support.pe_files import pe_file

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sdk.windows.windows_side import WindowsSite

NOT_FOUND = OSError(22, "The specified module could not be found", None, 126)


def test_dependencies_are_loaded_before_a_library_by_absolute_path(site: WindowsSite) -> None:
    site.load("rocm_sdk").preload_libraries("hipblas")
    assert site.names("load") == [
        "_rocm_sdk_core/bin/amd_comgr0713.dll",
        "_rocm_sdk_core/bin/amdhip64_7.dll",
        "_rocm_sdk_libraries/bin/rocblas.dll",
        "_rocm_sdk_libraries/bin/hipblas.dll",
    ]


def test_folders_of_all_packages_are_added_once_before_loading(site: WindowsSite) -> None:
    sdk = site.load("rocm_sdk")
    sdk.preload_libraries("amd_comgr")
    sdk.initialize_process(preload_shortnames=["hipblas"])
    assert site.names("add") == ["_rocm_sdk_core/bin", "_rocm_sdk_libraries/bin"]
    assert [what for what, _ in site.calls.asked][:3] == ["add", "add", "load"]


def test_folders_are_added_for_a_process_that_preloads_nothing(site: WindowsSite) -> None:
    site.load("rocm_sdk").initialize_process()
    assert site.names("add") == ["_rocm_sdk_core/bin", "_rocm_sdk_libraries/bin"]
    assert site.names("load") == []


def test_each_dll_is_loaded_once_and_kept_under_its_name(site: WindowsSite) -> None:
    sdk = site.load("rocm_sdk")
    sdk.preload_libraries("hipblas", "hipblaslt")
    sdk.preload_libraries("rocblas", "amdhip64")
    assert list(sdk._ALL_CDLLS) == ["amd_comgr", "amdhip64", "rocblas", "hipblas", "hipblaslt"]
    assert len(site.names("load")) == 5


def test_handles_of_added_folders_are_kept(site: WindowsSite) -> None:
    site.load("rocm_sdk").initialize_process()
    kept = site.load("rocm_sdk._dlls")._FOLDERS
    assert list(kept) == [f"{site.path}/_rocm_sdk_core/bin", f"{site.path}/_rocm_sdk_libraries/bin"]
    assert all(handle is not None for handle in kept.values())


def test_a_library_name_does_not_match_a_longer_name_that_contains_it(site: WindowsSite) -> None:
    found = site.load("rocm_sdk").find_libraries("hipblas", "hipblaslt", "amd_comgr")
    assert [path.name for path in found] == ["hipblas.dll", "libhipblaslt.dll", "amd_comgr0713.dll"]


def test_the_library_for_a_gpu_is_left_out_if_its_package_is_not_installed(site: WindowsSite) -> None:
    assert site.load("rocm_sdk").find_libraries("miopen-gfx1151") == []
    site.write_dlls(MIOpenCKGroupedConv_gfx1151=["amdhip64_7.dll"])
    [path] = site.load("rocm_sdk").find_libraries("miopen-gfx1151")
    assert path == site.path / "_rocm_sdk_libraries/bin/MIOpenCKGroupedConv_gfx1151.dll"


def fail(site: WindowsSite, broken: str, name: str) -> str:
    """Return what preloading a library says when a DLL of this file name can't be loaded."""
    site.calls.broken[broken] = NOT_FOUND
    with pytest.raises(OSError, match="can't be loaded") as caught:
        site.load("rocm_sdk").preload_libraries(name)
    return str(caught.value)


def searched(site: WindowsSite, first: str, second: str) -> str:
    system = site.path.parent / "System32"
    return f"{site.path}/{first}/bin, {system}/Python, {site.path}/{second}/bin, {system}"


def test_a_missing_dll_is_reported_with_its_importer_and_the_searched_folders(site: WindowsSite) -> None:
    path = site.path / "_rocm_sdk_core/bin/amdhip64_7.dll"
    site.write(
        "_rocm_sdk_core/bin/amdhip64_7.dll", pe_file("x.dll", "amd_comgr0713.dll", "rocm_kpack.dll", "KERNEL32.dll")
    )
    assert fail(site, "amdhip64_7.dll", "amdhip64") == (
        f"{path} can't be loaded: rocm_kpack.dll, which amdhip64_7.dll needs, is not in any of these folders: "
        f"{searched(site, '_rocm_sdk_core', '_rocm_sdk_libraries')}. "
        "No ROCm package contains rocm_kpack.dll: install the software that provides it, or repair Windows."
    )


def test_a_missing_indirect_dll_is_reported(site: WindowsSite) -> None:
    site.write("_rocm_sdk_core/bin/amd_comgr0713.dll", pe_file("x.dll", "gone.dll"))
    assert "gone.dll, which amd_comgr0713.dll needs, is not in any of these folders: " in fail(
        site, "hipblas.dll", "hipblas"
    )


def test_a_missing_packaged_dll_is_reported_with_the_install_command(site: WindowsSite) -> None:
    site.write("_rocm_sdk_core/bin/amdhip64_7.dll", pe_file("x.dll", "rocblas.dll"))
    (site.path / "_rocm_sdk_libraries/bin/rocblas.dll").unlink()
    message = fail(site, "amdhip64_7.dll", "amdhip64")
    assert message.endswith(f'. Install it with: pip install "rocm[libraries]==7.2.0" {FROM_INDEX}')


def test_missing_dlls_of_several_packages_are_reported_with_one_final_command(site: WindowsSite) -> None:
    site.write(
        "_rocm_sdk_core/bin/amd_comgr0713.dll", pe_file("x.dll", "amdhip64_7.dll", "rocblas.dll", "MSVCP140.dll")
    )
    (site.path / "_rocm_sdk_core/bin/amdhip64_7.dll").unlink()
    (site.path / "_rocm_sdk_libraries/bin/rocblas.dll").unlink()
    message = fail(site, "amd_comgr0713.dll", "amd_comgr")
    assert message.endswith(
        ". Install the Microsoft Visual C++ Redistributable for x64. "
        f'Install them with: pip install "rocm[libraries]==7.2.0" {FROM_INDEX}'
    )


@pytest.mark.parametrize("name", ["MSVCP140.dll", "VCRUNTIME140_1.dll", "vcomp140.dll"])
def test_a_missing_visual_c_dll_is_reported_with_the_redistributable_to_install(site: WindowsSite, name: str) -> None:
    site.write("_rocm_sdk_core/bin/amd_comgr0713.dll", pe_file("x.dll", name))
    message = fail(site, "amd_comgr0713.dll", "amd_comgr")
    assert message.endswith(". Install the Microsoft Visual C++ Redistributable for x64.")


def test_api_sets_and_dlls_already_in_the_process_are_not_missing(site: WindowsSite) -> None:
    # Given an import of no file, and one that python.exe brought from its own folder
    site.write(
        "_rocm_sdk_core/bin/amd_comgr0713.dll", pe_file("x.dll", "api-ms-win-crt-heap-l1-1-0.dll", "ucrtbase.dll")
    )
    site.calls.loaded["ucrtbase.dll"] = r"C:\Windows\System32\ucrtbase.dll"
    assert fail(site, "amd_comgr0713.dll", "amd_comgr").endswith(
        "can't be loaded: [Errno 22] The specified module could not be found"
    )


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"MZ", "it ends before byte 64"),
        (b"\x7fELF" + bytes(60), "it does not begin like a Windows program"),
        (pe_file("x.dll", "y.dll")[:600], "it ends before byte 680"),
        (pe_file("x.dll", machine=0x14C), "it is for machine type 0x14c, not x86-64"),
    ],
    ids=["cut", "ELF", "cut table", "32 bits"],
)
def test_a_damaged_dll_is_reported_with_the_reinstall_command(site: WindowsSite, data: bytes, fault: str) -> None:
    site.write("_rocm_sdk_core/bin/amd_comgr0713.dll", data)
    assert fail(site, "amd_comgr0713.dll", "amd_comgr") == (
        f"{site.path}/_rocm_sdk_core/bin/amd_comgr0713.dll can't be loaded: amd_comgr0713.dll can't be read: {fault}. "
        f'Reinstall: pip install "rocm==7.2.0" --force-reinstall {FROM_INDEX}'
    )


def test_circular_dll_imports_do_not_cause_an_endless_search(site: WindowsSite) -> None:
    site.write("_rocm_sdk_core/bin/amd_comgr0713.dll", pe_file("x.dll", "amdhip64_7.dll"))
    assert "amdhip64_7.dll can't be loaded: [Errno 22]" in fail(site, "amdhip64_7.dll", "amdhip64")


def test_a_path_that_the_loader_rejects_is_explained_by_its_length(site: WindowsSite, tmp_path: Path) -> None:
    missing = site.load("rocm_sdk._dlls")
    path = tmp_path / ("d" * 200) / ("e" * 60) / "hipblas.dll"
    text = missing.explain_failure(path, NOT_FOUND, [], site.calls)
    assert text == (
        f"{path} can't be loaded: its path has {len(str(path))} characters, but Windows accepts at most 259 for a DLL. "
        "Install into an environment in a folder with a shorter path."
    )


def test_a_previously_loaded_driver_dll_causes_a_warning(site: WindowsSite) -> None:
    site.calls.loaded["amdhip64_7.dll"] = str(site.path.parent / "System32/amdhip64_7.dll")
    text = (
        f"amdhip64_7.dll was loaded from {site.path.parent}/System32/amdhip64_7.dll before rocm_sdk could load "
        f"{site.path}/_rocm_sdk_core/bin/amdhip64_7.dll, and other DLLs use the copy that was loaded first. "
        "Call rocm_sdk.initialize_process or preload_libraries earlier."
    )
    with pytest.warns(RuntimeWarning, match=re.escape(text)):
        site.load("rocm_sdk").preload_libraries("amdhip64")


def test_a_previously_loaded_packaged_dll_causes_no_warning(site: WindowsSite) -> None:
    site.calls.loaded["amdhip64_7.dll"] = str(site.path / "_rocm_sdk_core/bin/amdhip64_7.dll")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        site.load("rocm_sdk").preload_libraries("amdhip64")


def test_unknown_names_are_refused_before_anything_is_loaded(site: WindowsSite) -> None:
    with pytest.raises(
        ModuleNotFoundError, match=r"^Unknown ROCm library 'hipblass'\. Known libraries: amd_comgr, amdhip64, "
    ):
        site.load("rocm_sdk").preload_libraries("amdhip64", "hipblass")
    assert site.names("load") == []
