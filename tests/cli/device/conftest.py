"""What several commands' tests read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Return a wheel with a fat binary and a kernel file."""
    library = (FIXTURES / "v22/libtwo.plain.so").read_bytes()
    files = {"demo/a.so": library, "demo/k_gfx942.dat": b"x"}
    return make_wheel(tmp_path / "in", "demo", files)
