"""How Windows finds DLLs, and that what ``rocm_sdk`` does about it is right: in Wine, by a loader like Python's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT
from tests.support.wine import windows_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.wine import Compiler, Wine

pytestmark = pytest.mark.slow

PROGRAMS = ROOT / "tests/support/programs"


@pytest.fixture(scope="module")
def loader(compile_for_windows: Compiler, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program that loads DLLs as Python does, from a folder of its own."""
    path = tmp_path_factory.mktemp("python") / "load_dlls.exe"
    return compile_for_windows.program(PROGRAMS / "load_dlls.c", path, "-municode")


@pytest.fixture(scope="module")
def site(compile_for_windows: Compiler, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return ``site`` with ``api7.dll`` in the libraries' folder and what it needs, ``dep6.dll``, in that of core."""
    site = tmp_path_factory.mktemp("a b") / "site"
    core, libraries = site / "_rocm_sdk_core/bin", site / "_rocm_sdk_libraries/bin"
    for folder, name in ((core, "core"), (site / "driver", "driver")):
        options = ("-shared", f'-DWHICH="{name}"', f"-Wl,--out-implib,{site}/{name}.a")
        compile_for_windows.program(PROGRAMS / "dep6.c", folder / "dep6.dll", *options)
    compile_for_windows.program(PROGRAMS / "api7.c", libraries / "api7.dll", "-shared", site / "core.a")
    return site


@pytest.fixture
def driver(wine: Wine, site: Path) -> Iterator[None]:
    """Have another ``dep6.dll`` in System32, as graphics drivers put theirs there."""
    with wine.driver(site / "driver/dep6.dll"):
        yield


CORE, LIBRARIES = "{site}\\_rocm_sdk_core\\bin", "{site}\\_rocm_sdk_libraries\\bin"
DEP, API = f"{CORE}\\dep6.dll", f"{LIBRARIES}\\api7.dll"
SAYS = ("call", "api7.dll", "api_says")


def act(wine: Wine, loader: Path, site: Path, steps: tuple[str, ...]) -> list[str]:
    """Return the lines that the loader prints for some steps."""
    done = wine.run(loader, *(step.replace("{site}", windows_path(site)) for step in steps))
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize(
    ("steps", "lines"),
    [
        pytest.param(("load", API), ["api7.dll: error 126"], id="nothing"),
        pytest.param(("default", "plain", API), ["api7.dll: error 126"], id="SetDefaultDllDirectories"),
        pytest.param(("add", LIBRARIES, "load", API), ["api7.dll: error 126"], id="only its own folder added"),
        pytest.param(("add", CORE, "load", API, *SAYS), ["api7.dll: loaded", "core"], id="AddDllDirectory"),
        pytest.param(
            ("add", CORE, "remove", CORE, "load", API), ["api7.dll: error 126"], id="RemoveDllDirectory afterwards"
        ),
        pytest.param(("path", CORE, "plain", API, *SAYS), ["api7.dll: loaded", "core"], id="PATH, LoadLibrary"),
        pytest.param(("path", CORE, "load", API), ["api7.dll: error 126"], id="PATH, as Python loads"),
        pytest.param(
            ("load", DEP, "load", API, *SAYS), ["dep6.dll: loaded", "api7.dll: loaded", "core"], id="loaded before"
        ),
        pytest.param(("first", CORE, "plain", API, *SAYS), ["api7.dll: loaded", "core"], id="SetDllDirectory"),
    ],
)
def test_windows_resolves_the_imports_of_a_dll(
    wine: Wine, loader: Path, site: Path, steps: tuple[str, ...], lines: list[str]
) -> None:
    assert act(wine, loader, site, steps) == lines


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("steps", "lines"),
    [
        pytest.param(("load", API, *SAYS), ["api7.dll: loaded", "driver"], id="nothing"),
        pytest.param(("add", CORE, "load", API, *SAYS), ["api7.dll: loaded", "core"], id="AddDllDirectory"),
        pytest.param(("path", CORE, "plain", API, *SAYS), ["api7.dll: loaded", "driver"], id="PATH, LoadLibrary"),
        pytest.param(
            ("load", DEP, "load", API, *SAYS), ["dep6.dll: loaded", "api7.dll: loaded", "core"], id="loaded before"
        ),
        pytest.param(("first", CORE, "plain", API, *SAYS), ["api7.dll: loaded", "core"], id="SetDllDirectory"),
        pytest.param(
            ("plain", "dep6.dll", "add", CORE, "load", API, *SAYS),
            ["dep6.dll: loaded", "api7.dll: loaded", "driver"],
            id="the driver's loaded before",
        ),
    ],
)
def test_the_driver_may_have_a_dll_of_the_same_name_in_system32(
    wine: Wine, loader: Path, site: Path, steps: tuple[str, ...], lines: list[str]
) -> None:
    assert act(wine, loader, site, steps) == lines


ASK = """if True:
    import json, sys
    from pathlib import Path
    from rocm_sdk._platform import Windows, use_platform
    from tests.sdk.windows.windows_side import Recorder
    calls = Recorder(Path("System32"))
    use_platform(Windows(calls))
    import rocm_sdk
    rocm_sdk.initialize_process(preload_shortnames=sys.argv[1:])
    print(json.dumps(calls.asked))
"""


def decide(site: Path, *names: str) -> tuple[str, ...]:
    """Return what ``rocm_sdk`` of installed packages does on Windows to preload libraries, as steps of the loader."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-c", ASK, *names], env=variables, capture_output=True, text=True, check=True
    )
    return tuple(part for what, path in json.loads(done.stdout) for part in (what, path.replace(str(site), "{site}")))


def steps_of(*parts: str) -> tuple[str, ...]:
    """Return steps with the paths that Windows has."""
    return tuple(part.replace("/", "\\") if part.startswith("{site}") else part for part in parts)


PACKAGED = ["amd_comgr0700.dll", "amdhip64_7.dll", "rocm_kpack.dll"]


@pytest.fixture
def other_rocm(wine: Wine, installed_windows_sample: Path) -> Iterator[None]:
    """Have another ROCm's runtime in System32, as AMD's driver puts it there."""
    with wine.driver(*(installed_windows_sample / "_rocm_sdk_core/bin" / name for name in PACKAGED)):
        yield


def places(site: Path, lines: list[str]) -> dict[str, str]:
    """Return where each DLL was loaded from, below the packages."""
    there = dict(line.split(": ", 1) for line in lines if ":\\" in line)
    return {name: path.replace(f"{windows_path(site)}\\", "").replace("\\", "/") for name, path in there.items()}


@pytest.mark.usefixtures("other_rocm")
def test_rocm_sdk_loads_its_own_runtime_instead_of_the_driver_copy(
    wine: Wine, loader: Path, installed_windows_sample: Path
) -> None:
    site = installed_windows_sample
    ask = [part for name in [*PACKAGED, "hipblas.dll", "rocblas.dll"] for part in ("where", name)]
    lines = act(wine, loader, site, steps_of(*decide(site, "hipblas"), *ask))
    assert "hipblas.dll: loaded" in lines
    assert not [line for line in lines if "error" in line]
    assert places(site, lines) == {
        "amd_comgr0700.dll": "_rocm_sdk_core/bin/amd_comgr0700.dll",
        "amdhip64_7.dll": "_rocm_sdk_core/bin/amdhip64_7.dll",
        "rocm_kpack.dll": "_rocm_sdk_core/bin/rocm_kpack.dll",
        "hipblas.dll": "_rocm_sdk_libraries/bin/hipblas.dll",
        "rocblas.dll": "_rocm_sdk_libraries/bin/rocblas.dll",
    }


@pytest.mark.usefixtures("other_rocm")
def test_without_rocm_sdk_the_driver_runtime_is_loaded(
    wine: Wine, loader: Path, installed_windows_sample: Path
) -> None:
    site = installed_windows_sample
    folders = f"{windows_path(site / '_rocm_sdk_core/bin')};{windows_path(site / '_rocm_sdk_libraries/bin')}"
    hipblas = "{site}/_rocm_sdk_libraries/bin/hipblas.dll"
    lines = act(wine, loader, site, steps_of("path", folders, "plain", hipblas, "where", "amdhip64_7.dll"))
    assert lines == ["hipblas.dll: loaded", "amdhip64_7.dll: C:\\windows\\system32\\amdhip64_7.dll"]


def test_every_public_library_loads_in_the_order_that_rocm_sdk_uses(
    wine: Wine, loader: Path, installed_windows_sample: Path
) -> None:
    site = installed_windows_sample
    names = ["hiprtc", "hipblaslt", "hipsolver", "hipfft", "hiprand", "hipsparse", "miopen", "hipdnn"]
    lines = act(wine, loader, site, steps_of(*decide(site, *names)))
    assert [line for line in lines if not line.endswith(": loaded")] == []
    assert {"MIOpen.dll: loaded", "libhipblaslt.dll: loaded", "hipdnn_backend.dll: loaded"} <= set(lines)


FRAMEWORK = """
int rocsolver_richardson_step(int, void *, void *, void *, void *, void *, void *, float);
__declspec(dllexport) int torch_step(void) { return rocsolver_richardson_step(0, 0, 0, 0, 0, 0, 0, 0); }
"""


def test_a_framework_finds_libraries_without_a_public_name(
    wine: Wine, loader: Path, compile_for_windows: Compiler, installed_windows_sample: Path, tmp_path: Path
) -> None:
    site = installed_windows_sample
    source, dll = tmp_path / "torch_hip.c", tmp_path / "torch/lib/torch_hip.dll"
    source.write_text(FRAMEWORK)
    needed = site / "_rocm_sdk_libraries/bin/rocsolver.dll"
    compile_for_windows.program(source, dll, "-shared", needed)
    load = ("load", windows_path(dll))
    assert act(wine, loader, site, load) == ["torch_hip.dll: error 126"]
    lines = act(wine, loader, site, steps_of(*decide(site, "hipblas"), *load, "where", "rocsolver.dll"))
    assert lines[-2:] == ["torch_hip.dll: loaded", f"rocsolver.dll: {windows_path(needed)}"]
