"""``rocwheel targets check`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.machines import copied_machine

if TYPE_CHECKING:
    from tests.support.command_line import Run


pytestmark = pytest.mark.slow


def test_check_looks_at_the_captured_files_of_another_machine(
    run_targets: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("container", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    root = copied_machine(tmp_path, "simd_count 416\ngfx_target_version 90402\n")
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
