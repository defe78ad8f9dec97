"""Permission bits of files that are made of others."""

from __future__ import annotations

import pytest

from rocwheel.foundation.files.modes import plain_mode, safe_mode


@pytest.mark.parametrize(
    ("mode", "expected"),
    [(0o104755, 0o755), (0o102755, 0o755), (0o100777, 0o755), (0o100666, 0o644), (0o100664, 0o644), (0, 0o644)],
    ids=["setuid", "setgid", "all", "world-writable", "group-writable", "none"],
)
def test_nobody_but_the_owner_writes_to_a_copy_or_runs_it_as_the_owner(mode: int, expected: int) -> None:
    assert safe_mode(mode) == expected


@pytest.mark.parametrize(
    ("mode", "expected"), [(0o100777, 0o755), (0o100500, 0o755), (0o100666, 0o644), (0o100400, 0o644), (0, 0o644)]
)
def test_a_plain_mode_says_only_whether_a_file_can_be_run(mode: int, expected: int) -> None:
    assert plain_mode(mode) == expected
