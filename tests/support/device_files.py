"""Device code that compilers and hands made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

Fixture = Callable[[str], memoryview]


@pytest.fixture(scope="session")
def fixture() -> Fixture:
    """Return a function that reads a fixture file."""
    return lambda name: memoryview((FIXTURES / name).read_bytes())


@pytest.fixture(scope="session")
def fixture_path() -> Callable[[str], Path]:
    """Return a function that returns the path of a fixture file."""
    return lambda name: FIXTURES / name
