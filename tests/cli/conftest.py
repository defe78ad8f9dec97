"""Fixtures of several modules: artifacts, a wheel with device code, messages as a log gets them, and targets."""

from __future__ import annotations

import io
import os
from functools import partial
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from rocwheel.cli.output import LazyConsole
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Return a wheel with a fat binary and a kernel file."""
    library = (FIXTURES / "v22/libtwo.plain.so").read_bytes()
    files = {"demo/a.so": library, "demo/k_gfx942.dat": b"x"}
    return make_wheel(tmp_path / "in", "demo", files)


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Catch what goes to standard error, as a log would."""
    stream = io.StringIO()
    console = LazyConsole(stderr=True)
    console.rich = Console(file=stream, soft_wrap=True, highlight=False)
    for module in ("output", "progress"):
        monkeypatch.setattr(f"rocwheel.cli.{module}.messages", console)
    return stream


DETECTION = ("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "ROCM_BOOTSTRAP_DISABLE_DETECTION", "ROCM_TARGET_LST")


@pytest.fixture
def run_targets(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs ``rocwheel targets`` where no variable replaces what is detected."""
    for name in (*DETECTION, "HSA_OVERRIDE_GFX_VERSION"):
        monkeypatch.delenv(name, raising=False)
    return partial(run, "targets")


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    folder = tmp_path / "artifacts"
    for name, size in (("blas_lib_generic", 1234567), ("blas_lib_gfx90a:xnack+", 10), ("blas_dev_generic", 1)):
        stage = folder / name / "math/stage/lib"
        stage.mkdir(parents=True)
        (folder / name / "artifact_manifest.txt").write_text("math/stage\n")
        (stage / "x").write_bytes(os.urandom(size))
        (stage / "y").symlink_to("x")
    return folder
