"""``rocwheel targets detect`` and ``check`` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
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
        "error: ROCM_TARGET_LST=/nowhere: the file cannot be read; correct the variable or unset it\n",
    )


def _machine(root: Path, *nodes: str) -> Path:
    for number, text in enumerate(nodes):
        properties = root / f"sys/class/kfd/kfd/topology/nodes/{number}/properties"
        properties.parent.mkdir(parents=True)
        properties.write_text(text)
    return root


def test_detect_looks_at_the_captured_files_of_another_machine(run_targets: Run, tmp_path: Path) -> None:
    gpu = "simd_count 416\ngfx_target_version {}\ndrm_render_minor 128\n"
    root = _machine(tmp_path, "simd_count 0\n", gpu.format(90402), gpu.format(100306))
    output = "gfx942  node 1  data-centre  /dev/dri/renderD128\ngfx1036  node 2  integrated  /dev/dri/renderD128\n"
    assert run_targets("detect", "--root", root, "-v") == (0, output, "")


def test_detect_tells_of_a_node_that_makes_no_sense_and_goes_on(run_targets: Run, tmp_path: Path) -> None:
    root = _machine(tmp_path, "", "simd_count 416\ngfx_target_version 90402\n")
    found = run_targets("detect", "--root", root)
    problem = (
        "/sys/class/kfd/kfd/topology/nodes/0/properties: is empty; "
        "expected properties, 'simd_count' and a number among them"
    )
    assert found == (2, "gfx942  data-centre\n", f"error: {problem}\n")
    document = json.loads(run_targets("detect", "--root", root, "--json").stdout)
    assert ([gpu["target"] for gpu in document["gpus"]], document["problems"]) == (["gfx942"], [problem])


def test_check_looks_at_the_captured_files_of_another_machine(
    run_targets: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("container", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    root = _machine(tmp_path, "simd_count 416\ngfx_target_version 90402\n")
    remedy = "sudo modprobe amdgpu && sudo udevadm trigger"
    assert run_targets("check", "--root", root) == (
        1,
        f"GPUs: gfx942\nerror: /dev/kfd does not exist\n  {remedy}\n",
        "",
    )


@pytest.mark.skipif(Path("/dev/kfd").exists(), reason="this machine has a GPU")
def test_check_without_a_gpu_says_so_and_is_fine_unless_one_is_required(run_targets: Run) -> None:
    assert run_targets("check").status == 0
    assert run_targets("check", "--require-gpu").status == 1
    report = json.loads(run_targets("check", "--json").stdout)
    assert (report["schema"], report["usable"], report["gpus"]) == ("rocwheel.gpu-access/1", True, [])
