"""What ``rocm-sdk doctor`` prints, and its exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.sdk.installed import FROM_INDEX

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


Make = Callable[..., Any]


def test_a_missing_gpu_is_noted_and_is_an_error_only_if_required(environment: Any) -> None:
    variables = {"ROCM_BOOTSTRAP_DISABLE_DETECTION": "1", "LD_LIBRARY_PATH": ""}
    done = environment.run("rocm-sdk", "doctor", **variables)
    assert "no AMD GPU was found" in done.stdout
    required = environment.run("rocm-sdk", "doctor", "--require-gpu", check=False, **variables)
    assert required.returncode == 1
    assert "error: a GPU is required, but none was found\n  lspci -d 1002: lists AMD devices\n" in required.stdout


def test_notes_and_warnings_are_not_failures(environment: Any, tmp_path: Path) -> None:
    (tmp_path / "libamdhip64.so.5").touch()
    variables = {"ROCM_BOOTSTRAP_DISABLE_DETECTION": "1", "ROCM_PATH": "", "HIP_PATH": ""}
    done = environment.run("rocm-sdk", "doctor", **variables, LD_LIBRARY_PATH="")
    unread = "To also check the contents of files, use --deep."
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"No problems found. {unread}")
    deep = environment.run("rocm-sdk", "doctor", "--deep", **variables, LD_LIBRARY_PATH="")
    assert (deep.returncode, deep.stdout.splitlines()[-1]) == (0, "No problems found.")
    warned = environment.run("rocm-sdk", "doctor", **variables, LD_LIBRARY_PATH=str(tmp_path))
    assert (warned.returncode, "No problems found." in warned.stdout) == (0, False)


def test_the_findings_are_available_as_json(environment: Any) -> None:
    done = environment.run("rocm-sdk", "doctor", "--json", check=False, ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx1030")
    document = json.loads(done.stdout)
    assert document["schema"] == "rocm-sdk.doctor/1"
    assert [gpu["target"] for gpu in document["gpus"]] == ["gfx1030"]
    assert {
        "level": "error",
        "text": "the package with the kernels for gfx1030 is not installed",
        "remedy": f'pip install "rocm[device-gfx1030]==7.2.0" {FROM_INDEX}',
    } in document["findings"]


def test_an_invalid_variable_is_an_error(environment: Any) -> None:
    done = environment.run("rocm-sdk", "doctor", check=False, ROCM_TARGET_LST="/nowhere")
    assert done.returncode == 1
    assert done.stdout.startswith(
        "error: ROCM_TARGET_LST=/nowhere: the file can't be read; correct the variable or unset it\n"
    )
