"""The HIP extension of examples/, built against Debian's ROCm as Python packages; the long run of that example."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

PACKAGES = ROOT / ".cache/debian-run/away/packages/dist"
NEEDED = ("cmake", "g++", "unzip")
MISSING = [tool for tool in NEEDED if shutil.which(tool) is None]


@pytest.mark.corpus
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
@pytest.mark.skipif(not PACKAGES.is_dir(), reason="Debian's ROCm is not made into packages yet: make debian")
def test_the_hip_extension_passes_the_audit_without_repairs_and_loads(tmp_path: Path) -> None:
    command = ["bash", str(ROOT / "examples/hip-extension/run.sh"), str(PACKAGES), str(tmp_path / "run")]
    finished = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert finished.returncode == 0, finished.stdout[-5000:]
    assert "-manylinux_2_5_x86_64.whl\n" in finished.stdout
    assert "0 errors, 0 warnings, 0 notes" in finished.stdout
    assert "RUNPATH   $ORIGIN/../_rocm_sdk_core/lib " in finished.stdout
    assert finished.stdout.splitlines()[-1] in {"HIP says: hipErrorInvalidDevice", "[12.0, 24.0]"}
