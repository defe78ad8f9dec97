"""What several commands' tests read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

SETTINGS = 'schema = 1\ncompiler = "/usr/bin/gcc"\ntargets = ["gfx90a"]\npython-versions = ["3.12"]\n'

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with settings of a build of JAX."""
    (tmp_path / "rocm.toml").write_text(SETTINGS)
    return tmp_path
