"""The packages of the sample SDK for Windows, installed by uv, with ``rocm_sdk`` as on Windows."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

AS_ON_WINDOWS = """if True:
    import sys
    from pathlib import Path
    import rocm_sdk._system as system
    from rocm_sdk._platform import Windows, use_platform
    from tests.sdk.windows.windows_side import Recorder
    calls = Recorder(Path(sys.argv.pop(1)))
    use_platform(Windows(calls))
    system.System.__init__.__defaults__ = (Path("/"), None, "win32")
    import rocm_sdk.tests._support as support
    support.check_dll = lambda path, limit: "" if calls.load(str(path)) else "never"
    from rocm_sdk._cli import main
    main()
"""


@pytest.fixture(scope="module")
def site(installed_windows_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the installed packages, whose development files are not expanded yet."""
    copied = tmp_path_factory.mktemp("a site") / "site"
    shutil.copytree(installed_windows_sample, copied)
    return copied


def run(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``rocm-sdk`` as on a Windows with the system's DLLs and no GPU."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("ROCM_", "HSA_", "HIP_"))}
    variables |= {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]), "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-c", AS_ON_WINDOWS, str(site.parent / "System32"), *words]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def test_targets_and_version_match_the_packages(site: Path) -> None:
    assert run(site, "targets").stdout == "gfx1030;gfx1100\n"
    assert run(site, "version").stdout.startswith("7.")


def test_init_creates_a_tree_without_symlinks_that_contains_all_paths(site: Path) -> None:
    links = json.loads((site / "rocm_sdk_devel/_links.json").read_text())["links"]
    done = run(site, "init")
    root = site / "_rocm_sdk_devel"
    assert (done.stdout, done.stderr) == (f"The ROCm development files are ready in {root}\n", "")
    assert len(links) > 20
    assert all((root / path).samefile(site / target) for path, target in links.items())
    assert not any(path.is_symlink() for path in root.rglob("*"))
    assert run(site, "path", "--cmake").stdout == f"{root}/lib/cmake\n"
    assert run(site, "path", "--bin").stdout == f"{root}/bin\n"


def test_the_self_test_loads_every_dll_and_checks_the_script_launchers(site: Path) -> None:
    done = run(site, "test")
    lines = done.stdout.splitlines()
    assert done.stderr == ""
    assert "passed    core: public libraries load" in lines
    assert "passed    libraries: public libraries load" in lines
    assert "passed    devel: links lead somewhere" in lines
    # uv makes launchers on Windows alone.
    assert [line for line in lines if line.startswith("failed")] == ["failed    core: console scripts run"]
    assert "          the console script hipcc doesn't exist, or doesn't belong to core" in lines


def test_the_doctor_names_missing_system_dlls(site: Path) -> None:
    done = run(site, "doctor", "--json")
    findings = json.loads(done.stdout)["findings"]
    missing = [finding["text"].partition(",")[0] for finding in findings if " is not in any of " in finding["text"]]
    assert "KERNEL32.dll" in missing
    assert not [name for name in missing if (site / "_rocm_sdk_core/bin" / name).exists()]
    texts = [finding["text"] for finding in findings if " is not in any of " not in finding["text"]]
    assert texts == [
        "no AMD GPU was found: C:\\Windows\\System32\\clinfo.exe, a part of AMD's graphics driver, can't be run"
    ]


def test_the_names_that_frameworks_use_exist(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "rocm_sdk"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(site)
    facts = importlib.import_module("rocm_sdk._dist_info")
    library = facts.ALL_LIBRARIES["hipblas"]
    assert (library.so_pattern, library.dll_pattern, library.windows_relpath) == ("", "hipblas.dll", "bin")
    assert facts.WINDOWS_TARGET_FAMILIES == ["gfx1030", "gfx1100"]
    assert "profiler" not in facts.ALL_PACKAGES
