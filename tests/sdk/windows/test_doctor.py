"""What the doctor finds on Windows before a program does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.pe_files import pe_file

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.sdk.windows.windows_side import WindowsSite


def check(site: WindowsSite, root: Path | None = None) -> list[tuple[str, str, str]]:
    system = site.load("rocm_sdk._system").System(root or site.path, {}, "win32")
    platform = site.load("rocm_sdk._platform").this_platform()
    return [tuple(one) for one in site.load("rocm_sdk._doctor_loading").check_dlls(system, platform)]


def test_packages_whose_dlls_find_each_other_pass(site: WindowsSite) -> None:
    assert check(site) == []


def test_a_missing_dll_is_reported_once_without_loading_anything(site: WindowsSite) -> None:
    site.write("_rocm_sdk_core/bin/amdhip64_7.dll", pe_file("x.dll", "MSVCP140.dll"))
    [(level, text, remedy)] = check(site)
    assert level == "error"
    assert text.startswith("MSVCP140.dll, which amdhip64_7.dll needs, is not in any of these folders: ")
    assert remedy == "Install the Microsoft Visual C++ Redistributable for x64"
    assert site.calls.asked == []


def test_driver_dlls_with_the_same_names_cause_a_note(site: WindowsSite, tmp_path: Path) -> None:
    # Given a machine's root, below which the paths of Windows are names of folders here
    folder = tmp_path / "machine" / "C:\\Windows\\System32"
    folder.mkdir(parents=True)
    for name in ("amdhip64_7.dll", "AMD_COMGR0713.dll", "kernel32.dll"):
        (folder / name).touch()
    assert check(site, tmp_path / "machine") == [
        (
            "note",
            (
                "C:\\Windows\\System32 has AMD_COMGR0713.dll, amdhip64_7.dll from the graphics driver: "
                "programs use them unless rocm_sdk loads its DLLs first"
            ),
            "In Python, call rocm_sdk.initialize_process before any other code loads ROCm",
        )
    ]


def test_paths_that_break_rocblas_cause_a_warning(site: WindowsSite, monkeypatch: pytest.MonkeyPatch) -> None:
    site.write("_rocm_sdk_libraries/bin/rocblas/library/kernels.co")
    folder = site.path / "_rocm_sdk_libraries/bin/rocblas/library"
    monkeypatch.setattr(site.load("rocm_sdk._doctor_loading"), "LONGEST_KERNELS", len(str(folder)) - 1)
    assert check(site) == [
        (
            "warning",
            (
                f"{folder} has {len(str(folder))} characters, but rocBLAS is known to fail with more than "
                f"{len(str(folder)) - 1}"
            ),
            "Install into an environment in a folder with a shorter path",
        )
    ]


def test_the_whole_doctor_runs_on_windows(site: WindowsSite) -> None:
    system = site.load("rocm_sdk._system").System(site.path, {}, "win32")
    _, diagnoses = site.load("rocm_sdk._doctor").diagnose(system)
    assert [one.text for one in diagnoses if "System32" in one.text] == [
        "no AMD GPU was found: C:\\Windows\\System32\\clinfo.exe, a part of AMD's graphics driver, can't be run"
    ]
