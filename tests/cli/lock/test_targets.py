"""What ``rocwheel lock`` says of GPUs for which nothing is locked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("name", "is_told"), [("rocm-sdk-core", True), ("rocm-sdk-device-gfx906", False)])
def test_targets_that_change_nothing_are_told(run: Run, tmp_path: Path, name: str, is_told: bool) -> None:
    make_wheel(tmp_path / "dist", name, {}, tag="py3-none-any", is_purelib=True)
    words = ("--targets", "gfx906", "--find-links", tmp_path / "dist", "-o", tmp_path / "pylock.toml")
    done = run("lock", name, *words)
    assert done.status == 0
    text = (
        f"warning: {tmp_path}/pylock.toml: has no package for certain GPUs, so --targets changes nothing. Where the "
        "release has such, ask for an extra: rocm[device-gfx906].\n"
    )
    assert done.stderr == (text if is_told else "")
