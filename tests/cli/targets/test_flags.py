"""``rocwheel targets flags`` as a user runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.command_line import Run


pytestmark = pytest.mark.slow


def test_flags_are_ready_to_paste(run_targets: Run) -> None:
    assert run_targets("flags", "--for", "hip", "gfx1100", "gfx90a:xnack+") == (
        0,
        "--offload-arch=gfx90a:xnack+ --offload-arch=gfx1100\n",
        "",
    )


def test_flags_for_gentoo_take_optional_targets(run_targets: Run) -> None:
    assert 'IUSE="+amdgpu_targets_gfx1100 amdgpu_targets_gfx1031"\n' in (
        run_targets("flags", "--for", "gentoo", "gfx1100", "--optional", "gfx1031").stdout
    )


def test_optional_targets_are_refused_for_tools_that_know_none(run_targets: Run) -> None:
    message = "error: --optional: cmake has no optional targets; expected --for gentoo\n"
    assert run_targets("flags", "--for", "cmake", "gfx1100", "--optional", "gfx1031") == (2, "", message)
