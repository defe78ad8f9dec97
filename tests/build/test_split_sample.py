"""A split build of the sample SDK: its libraries load beside its own HIP runtime, which checks what they register."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from rocwheel.demo import SAMPLE_SDK
from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

LOAD = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
binaries, kernels = ctypes.c_int(), ctypes.c_int()
ctypes.CDLL("libamdhip64.so.7").hipSampleGetRegistered(ctypes.byref(binaries), ctypes.byref(kernels))
print(binaries.value)
"""


def test_libraries_in_a_split_build_can_be_loaded_and_register_their_code(tmp_path: Path) -> None:
    done = rocwheel("build", "--artifact-dir", str(SAMPLE_SDK), "-d", str(tmp_path), "--split-device", "--quiet")
    assert done.returncode == 0, done.stderr
    for wheel in (tmp_path / "dist").glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    library = tmp_path / "site/_rocm_sdk_libraries/lib/librocrand.so.1"
    loaded = subprocess.run([sys.executable, "-c", LOAD, library], capture_output=True, text=True, check=False)
    assert (loaded.returncode, loaded.stdout) == (0, "1\n"), loaded.stderr
