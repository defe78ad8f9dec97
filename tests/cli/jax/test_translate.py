"""``rocwheel jax translate`` as a user runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow


def test_translate_takes_a_command_line_behind_two_dashes(tmp_path: Path) -> None:
    old = [
        "python",
        "build/build.py",
        "build",
        "--wheels=jax-rocm-pjrt",
        "--bazel_options=--linkopt=-Wl,-rpath,$ORIGIN",
    ]
    made = rocwheel("jax", "translate", "--version", "1.0", "--", *old, cwd=tmp_path)
    assert made.returncode == 0
    assert "bazel build --config=rocm_build --config=python312 '--linkopt=-Wl,-rpath,$ORIGIN' //pjrt" in made.stdout
    assert "#   --linkopt=-Wl,-rpath,$ORIGIN: went through a second shell" in made.stdout
