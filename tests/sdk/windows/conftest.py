"""``rocm_sdk`` as on Windows."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.sdk.sets import render_literals
from tests.sdk.windows.windows_side import Recorder, WindowsSite, library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

ROWS = {
    "amd_comgr": library("core", "amd_comgr0713.dll"),
    "amdhip64": library("core", "amdhip64_7.dll", "amd_comgr"),
    "rocblas": library("libraries", "rocblas.dll", "amd_comgr", "amdhip64"),
    "hipblas": library("libraries", "hipblas.dll", "amd_comgr", "amdhip64", "rocblas"),
    "hipblaslt": library("libraries", "libhipblaslt.dll", "amd_comgr", "amdhip64"),
    "miopen-gfx1151": library("device", "MIOpenCKGroupedConv_gfx1151.dll", "amdhip64", optional=True),
}


@pytest.fixture
def restored_interrupts() -> Iterator[None]:
    """Have Ctrl-C mean what it did: `WindowsStarter` ignores it for as long as its process lives, here the tests'."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def site(load_sdk: Callable[..., Callable[[str], ModuleType]], tmp_path: Path) -> Iterator[WindowsSite]:
    """Return packages of core and libraries with the DLLs of `ROWS`, each needing what its row says."""
    load = load_sdk()
    info = {"LIBRARIES": ROWS, "FAMILIES": {"gfx1151": {"targets": ["gfx1151"], "platforms": ["win32"]}}}
    with (tmp_path / "site/rocm_sdk/_build_info.py").open("ab") as file:
        file.write(render_literals(info))
    system = tmp_path / "System32"
    system.mkdir()
    calls = Recorder(system)
    platforms = load("rocm_sdk._platform")
    platforms.use_platform(platforms.Windows(calls))
    made = WindowsSite(tmp_path / "site", load, calls)
    made.write_dlls(
        amd_comgr0713=["KERNEL32.dll"],
        amdhip64_7=["amd_comgr0713.dll", "KERNEL32.dll"],
        rocblas=["amdhip64_7.dll"],
        hipblas=["rocblas.dll", "amdhip64_7.dll"],
        libhipblaslt=["amdhip64_7.dll"],
    )
    (system / "KERNEL32.dll").touch()
    yield made
    load("rocm_sdk")._ALL_CDLLS.clear()
