"""``rocwheel targets detect`` as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.machines import copied_machine

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


pytestmark = pytest.mark.slow


def test_detect_prints_a_line_for_each_gpu(run_targets: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "gfx1100,gfx1036,gfx1100")
    assert run_targets("detect") == (0, "gfx1100  desktop\ngfx1036  integrated\ngfx1100  desktop\n", "")


def test_detect_ends_with_1_when_a_required_gpu_is_absent(run_targets: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_DISABLE_DETECTION", "1")
    variable = "ROCM_BOOTSTRAP_DISABLE_DETECTION"
    message = f"note: no AMD GPU was found\nnote: {variable}=1 replaces what the kernel shows\n  unset {variable}\n"
    assert run_targets("detect") == (0, "", message)
    assert run_targets("detect", "--require-gpu") == (1, "", message)
    assert run_targets("detect", "--require-gpu", "--quiet") == (1, "", "")


def test_a_variable_that_makes_no_sense_ends_with_2(run_targets: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_TARGET_LST", "/nowhere")
    assert run_targets("detect") == (
        2,
        "",
        "error: ROCM_TARGET_LST=/nowhere: the file can't be read; correct the variable or unset it\n",
    )


def test_detect_looks_at_the_captured_files_of_another_machine(run_targets: Run, tmp_path: Path) -> None:
    gpu = "simd_count 416\ngfx_target_version {}\ndrm_render_minor 128\n"
    root = copied_machine(tmp_path, "simd_count 0\n", gpu.format(90402), gpu.format(100306))
    output = "gfx942  node 1  data-centre  /dev/dri/renderD128\ngfx1036  node 2  integrated  /dev/dri/renderD128\n"
    assert run_targets("detect", "--root", root, "-v") == (0, output, "")


def test_detect_tells_of_a_node_that_makes_no_sense_and_goes_on(run_targets: Run, tmp_path: Path) -> None:
    root = copied_machine(tmp_path, "", "simd_count 416\ngfx_target_version 90402\n")
    found = run_targets("detect", "--root", root)
    problem = (
        "/sys/class/kfd/kfd/topology/nodes/0/properties: is empty; "
        "expected properties, 'simd_count' and a number among them"
    )
    assert found == (2, "gfx942  data-centre\n", f"error: {problem}\n")
    document = json.loads(run_targets("detect", "--root", root, "--json").stdout)
    assert ([gpu["target"] for gpu in document["gpus"]], document["problems"]) == (["gfx942"], [problem])
