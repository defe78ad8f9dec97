"""An environment with development files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.sdk.installed import Installed, MakeInstalled


@pytest.fixture
def environment(make_installed: MakeInstalled) -> Installed:
    return make_installed("rocm[devel]")
