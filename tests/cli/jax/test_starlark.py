"""``rocwheel jax starlark`` as a user runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow


def test_starlark_writes_a_package_and_prints_its_declaration(project: Path) -> None:
    made = rocwheel("jax", "starlark", "rocm_wheel", "--quiet", cwd=project)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith('load("//rocm_wheel:rocm_wheel_repository.bzl"')
    assert (project / "rocm_wheel/BUILD.bazel").is_file()
