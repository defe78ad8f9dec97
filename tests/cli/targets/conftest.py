"""What several commands' tests run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.command_line import Run

DETECTION = ("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "ROCM_BOOTSTRAP_DISABLE_DETECTION", "ROCM_TARGET_LST")


@pytest.fixture
def run_targets(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs ``rocwheel targets`` where no variable replaces what is detected."""
    for name in (*DETECTION, "HSA_OVERRIDE_GFX_VERSION"):
        monkeypatch.delenv(name, raising=False)
    return partial(run, "targets")
