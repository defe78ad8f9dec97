"""An environment with development files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.sdk.installed import Installed, MakeEnvironment, MakeSet


@pytest.fixture
def environment(make_set: MakeSet, make_environment: MakeEnvironment) -> Installed:
    environment = make_environment(make_set())
    environment.install("rocm[devel]", "--link-mode=copy")
    return environment
