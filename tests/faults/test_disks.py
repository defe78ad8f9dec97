"""Disks that fill up or turn read-only under a few commands; ``make faults`` has all of them meet more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trials.faults.disks import why_no_disks
from trials.faults.runner import run_on_disks
from trials.faults.shim import why_not

if TYPE_CHECKING:
    from pathlib import Path

_REASON = why_not() or why_no_disks()

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(_REASON), reason=_REASON or "disks can be mounted")]


@pytest.mark.parametrize("name", ["index", "split", "init"])
def test_a_disk_that_fills_up_or_becomes_read_only_leaves_consistent_files(name: str, tmp_path: Path) -> None:
    row = run_on_disks(name, 2, tmp_path)
    assert row.found == ()
    assert row.full >= 1, "the disk has been too small"
