"""Environments to be diagnosed, on machines made of files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

GPU = "simd_count 416\ngfx_target_version {version}\ndrm_render_minor 128\n"
DIAGNOSE = """
import json, os, pathlib
os.chdir("/usr/lib")
from rocm_sdk._doctor import diagnose
from rocm_sdk._system import System
system = System(pathlib.Path({root!r}), {environ!r}, "linux")
print(json.dumps(diagnose(system)[1]))
"""
Make = Callable[..., Any]


@pytest.fixture
def diagnose(tmp_path: Path) -> Callable[..., list[list[str]]]:
    """Return a function that diagnoses an environment on a machine of GPUs (their versions), files and variables."""

    def run(
        environment: Any,
        *versions: int,
        files: tuple[str, ...] = (),
        texts: dict[str, str] | None = None,
        **environ: str,
    ) -> list[list[str]]:
        topology = "/sys/class/kfd/kfd/topology/nodes"
        machine = {f"{topology}/{node}/properties": GPU.format(version=v) for node, v in enumerate(versions)}
        machine |= {"/dev/kfd": "", "/dev/dri/renderD128": "", **dict.fromkeys(files, ""), **(texts or {})}
        root = tmp_path / "machine"
        for name, text in machine.items():
            path = root / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        findings: list[list[str]] = json.loads(environment.evaluate(DIAGNOSE.format(root=str(root), environ=environ)))
        return findings

    return run


@pytest.fixture
def environment(make_installed: Make) -> Any:
    """Return an environment with core, libraries and the code for gfx906; the release has gfx1030 too."""
    return make_installed("rocm[libraries,device-gfx906]")
