"""``rocwheel jax wheel`` as a user runs it; what it shares with ``rocwheel wheel`` is tested there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("rocm", ["", "7.", "x"])
def test_the_rocm_option_must_be_a_version(rocm: str, tmp_path: Path) -> None:
    failed = rocwheel("jax", "wheel", "pjrt", "--version", "1.0", "--rocm", rocm, cwd=tmp_path)
    assert (failed.returncode, failed.stderr) == (
        2,
        f"error: --rocm: is {rocm!r}; expected a version such as 7 or 7.2.0\n",
    )
