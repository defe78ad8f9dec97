"""Other versions of Python for tests; a test is skipped where its version is absent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.find_python import find_python

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["require_python"]


def require_python(version: str) -> Path:
    """Return the interpreter of a version such as ``3.12``, or skip the test."""
    found = find_python(version)
    if found is None:
        pytest.skip(f"Python {version} is not installed (uv python install {version})")
    return found
