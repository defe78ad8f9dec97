"""DLLs that somebody has planted below the packages' folders, or in the working directory: none is taken."""

from __future__ import annotations

import re
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.pe_files import pe_file

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sdk.windows.windows_side import WindowsSite

BELOW = ["_rocm_sdk_core/bin/evil", "_rocm_sdk_core/bin/evil/bin", "_rocm_sdk_core/evil", "_rocm_sdk_core/bin/aaa.dll"]


@pytest.fixture(params=BELOW)
def below(request: pytest.FixtureRequest, site: WindowsSite) -> Path:
    """Return a folder below a package's with DLLs of the names of its own."""
    for name in ("amd_comgr0713", "amdhip64_7", "rocblas"):
        site.write(f"{request.param}/{name}.dll", pe_file(f"{name}.dll"))
    folder: Path = site.path / request.param
    return folder


@pytest.mark.usefixtures("below")
def test_subfolders_of_package_folders_are_not_searched_for_dlls(site: WindowsSite) -> None:
    site.load("rocm_sdk").initialize_process(preload_shortnames=["rocblas"])
    assert site.names("add") == ["_rocm_sdk_core/bin", "_rocm_sdk_libraries/bin"]
    assert site.names("load") == [
        "_rocm_sdk_core/bin/amd_comgr0713.dll",
        "_rocm_sdk_core/bin/amdhip64_7.dll",
        "_rocm_sdk_libraries/bin/rocblas.dll",
    ]


@pytest.mark.usefixtures("below")
def test_a_dll_in_a_subfolder_does_not_replace_a_missing_packaged_dll(site: WindowsSite) -> None:
    (site.path / "_rocm_sdk_core/bin/amdhip64_7.dll").unlink()
    text = f"nothing matches 'amdhip64_7.dll' in {site.path}/_rocm_sdk_core/bin. Reinstall the package."
    with pytest.raises(FileNotFoundError, match=re.escape(text)):
        site.load("rocm_sdk").preload_libraries("rocblas")
    with pytest.raises(FileNotFoundError, match=re.escape(text)):
        site.load("rocm_sdk").find_libraries("amdhip64")
    assert site.names("load") == []


def test_a_folder_named_like_a_dll_does_not_replace_the_dll(site: WindowsSite) -> None:
    (site.path / "_rocm_sdk_core/bin/amdhip64_7.dll").unlink()
    site.write("_rocm_sdk_core/bin/amdhip64_7.dll/amdhip64_7.dll", pe_file("amdhip64_7.dll"))
    with pytest.raises(FileNotFoundError, match=r"nothing matches 'amdhip64_7\.dll'"):
        site.load("rocm_sdk").preload_libraries("amdhip64")


@pytest.mark.usefixtures("below")
def test_a_dll_in_a_subfolder_does_not_hide_a_missing_dll(site: WindowsSite) -> None:
    (site.path / "_rocm_sdk_core/bin/amd_comgr0713.dll").unlink()
    site.calls.broken["amdhip64_7.dll"] = OSError(22, "The specified module could not be found", None, 126)
    load = site.load("rocm_sdk._dlls")
    platform = site.load("rocm_sdk._platform").this_platform()
    with pytest.raises(
        OSError, match=r"amd_comgr0713\.dll, which amdhip64_7\.dll needs, is not in any of these folders: "
    ):
        load.load_dll(site.path / "_rocm_sdk_core/bin/amdhip64_7.dll", platform)


def test_an_already_loaded_dll_from_a_subfolder_causes_a_warning(site: WindowsSite, below: Path) -> None:
    site.calls.loaded["amdhip64_7.dll"] = str(below / "amdhip64_7.dll")
    with pytest.warns(RuntimeWarning, match=re.escape(f"amdhip64_7.dll was loaded from {below}/amdhip64_7.dll before")):
        site.load("rocm_sdk").preload_libraries("amdhip64")


@pytest.fixture
def hostile(site: WindowsSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, first on ``sys.path``: it alone has the libraries, and DLLs lie in it as well."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    shutil.move(site.path / "_rocm_sdk_libraries", folder / "_rocm_sdk_libraries")
    for name in ("rocblas", "amd_comgr0713"):
        (folder / f"{name}.dll").write_bytes(pe_file(f"{name}.dll"))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    return folder


@pytest.mark.usefixtures("hostile")
def test_folders_in_the_working_directory_are_not_searched_for_dlls(site: WindowsSite) -> None:
    site.load("rocm_sdk").initialize_process(preload_shortnames=["amdhip64"])
    assert site.names("add") == ["_rocm_sdk_core/bin"]
    with pytest.raises(ModuleNotFoundError, match="ROCm libraries not installed: rocblas "):
        site.load("rocm_sdk").preload_libraries("rocblas")
    assert site.names("load") == ["_rocm_sdk_core/bin/amd_comgr0713.dll", "_rocm_sdk_core/bin/amdhip64_7.dll"]


@pytest.mark.usefixtures("hostile")
def test_a_dll_in_the_working_directory_does_not_hide_a_missing_dll(site: WindowsSite) -> None:
    site.write("_rocm_sdk_core/bin/amd_comgr0713.dll", pe_file("amd_comgr0713.dll", "rocblas.dll"))
    site.calls.broken["amd_comgr0713.dll"] = OSError(22, "The specified module could not be found", None, 126)
    with pytest.raises(
        OSError, match=r"rocblas\.dll, which amd_comgr0713\.dll needs, is not in any of these folders: "
    ):
        site.load("rocm_sdk").preload_libraries("amd_comgr")
