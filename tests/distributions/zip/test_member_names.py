"""Where members of wheels are installed, and which names lead outside."""

from __future__ import annotations

import pytest

from rocwheel.distributions.zip.member_names import outside_reason


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        ("demo/../../evil.so", "a path that leads out of the wheel"),
        ("/etc/evil.so", "an absolute path"),
        ("C:/evil.dll", "an absolute path"),
        ("demo\\evil.dll", "a name with a backslash, which some systems take for a folder's end"),
        ("demo/./a.so", "a path that is not in its plain form"),
        ("demo//a.so", "a path that is not in its plain form"),
        ("demo/..a/b..so", ""),
    ],
)  # fmt: skip
def test_names_that_lead_out_of_the_environment_are_reported(member: str, reason: str) -> None:
    assert outside_reason(member) == reason
