"""The self test loads each DLL in a process of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.pe_files import pe_file
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from tests.sdk.windows.windows_side import WindowsSite

pytestmark = pytest.mark.slow

AS_ON_WINDOWS = """
import os, sys, time
from pathlib import Path
sys.path[:0] = {paths!r}
from rocm_sdk._platform import Windows, use_platform
from tests.sdk.windows.windows_side import Recorder

class Calls(Recorder):
    def load(self, path):
        name = Path(path).name
        if name == "crashes.dll":
            os._exit(0x05)
        if name == "hangs.dll":
            time.sleep(60)
        if name == "broken.dll":
            raise OSError(22, "The specified module could not be found")
        return super().load(path)

use_platform(Windows(Calls(Path({system!r}))))
"""


@pytest.fixture
def check(site: WindowsSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the module, whose processes take this machine for Windows."""
    text = AS_ON_WINDOWS.format(paths=[str(site.path), str(ROOT)], system=str(tmp_path / "System32"))
    (tmp_path / "sitecustomize.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return site.load("rocm_sdk._dlls")


def test_a_dll_that_loads_has_no_error(check: ModuleType, site: WindowsSite) -> None:
    assert check.check_dll(site.path / "_rocm_sdk_libraries/bin/hipblas.dll", 60) == ""


def test_a_missing_dll_dependency_is_reported_by_name(check: ModuleType, site: WindowsSite) -> None:
    path = site.write("_rocm_sdk_libraries/bin/broken.dll", pe_file("broken.dll", "größe.dll"))
    text = check.check_dll(path, 60)
    assert text.startswith(
        f"{path} can't be loaded: gr\\xc3\\xb6\\xc3\\x9fe.dll, which broken.dll needs, is not in any of these folders: "
    )


def test_a_dll_that_ends_its_process_is_reported_with_the_exit_code(check: ModuleType, site: WindowsSite) -> None:
    path = site.write("_rocm_sdk_libraries/bin/crashes.dll", pe_file("crashes.dll"))
    assert check.check_dll(path, 60) == "the process exited with code 0x5 during loading"


def test_a_dll_that_hangs_is_reported(check: ModuleType, site: WindowsSite) -> None:
    path = site.write("_rocm_sdk_libraries/bin/hangs.dll", pe_file("hangs.dll"))
    assert check.check_dll(path, 2) == f"{path} did not load within 2 seconds"


def test_files_that_are_not_native_dlls_are_left_out(check: ModuleType, site: WindowsSite) -> None:
    files = {"a": pe_file("a.dll"), "b": pe_file("b.dll", machine=0xAA64), "c": b"MZ", "d": b"\x7fELF"}
    paths = {name: site.write(f"x/{name}.dll", data) for name, data in files.items()}
    assert [name for name, path in paths.items() if check.is_native_dll(path)] == ["a"]


def test_no_file_planted_in_the_working_directory_runs(
    check: ModuleType, site: WindowsSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given modules of Python's names where the test is started, and an entry that Python resolves there
    hostile, marks = tmp_path / "hostile", tmp_path / "marks"
    hostile.mkdir()
    marks.mkdir()
    for name in ("ctypes", "struct", "subprocess"):
        (hostile / f"{name}.py").write_text(f"open({str(marks / name)!r}, 'w').close()\n")
    monkeypatch.chdir(hostile)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}.")
    # When a DLL is loaded
    text = check.check_dll(site.path / "_rocm_sdk_libraries/bin/hipblas.dll", 60)
    # Then Python's own are used
    assert text == ""
    assert [*marks.iterdir()] == []
