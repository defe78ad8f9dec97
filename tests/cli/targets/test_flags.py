"""``rocwheel targets flags`` as a user runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

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
    message = "error: --optional: cmake has no optional targets; expected --for gentoo or --for ebuild\n"
    assert run_targets("flags", "--for", "cmake", "gfx1100", "--optional", "gfx1031") == (2, "", message)


def test_targets_are_read_from_gentoos_file_of_flags(run_targets: Run, tmp_path: Path) -> None:
    desc = tmp_path / "amdgpu_targets.desc"
    desc.write_text("# Copyright\n\ngfx906 - Vega\ngfx1100 - RDNA3\n")
    assert run_targets("expand", f"desc@{desc}", "gfx1030").stdout == "gfx906\ngfx1030\ngfx1100\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gfx906\n", "has 'gfx906'; expected FLAG - DESCRIPTION"),
        (None, "can't be read"),
    ],
    ids=["another form", "absent"],
)
def test_bad_file_of_flags_is_refused(run_targets: Run, tmp_path: Path, text: str | None, found: str) -> None:
    desc = tmp_path / "amdgpu_targets.desc"
    if text is not None:
        desc.write_text(text)
    finished = run_targets("expand", f"desc@{desc}")
    assert (finished.status, finished.stdout) == (2, "")
    assert found in finished.stderr


def test_flags_for_debian_builds_are_read_back(run_targets: Run) -> None:
    text = run_targets("flags", "--for", "debian-build", "gfx1100", "gfx90a:xnack+").stdout
    assert text == 'export ROCM_TARGET_ARCH_FIXED="gfx90a:xnack+ gfx1100"\n'
    assert run_targets("expand", text).stdout == "gfx90a:xnack+\ngfx1100\n"
