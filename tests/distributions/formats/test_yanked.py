"""What counts as a mark of a yanked file."""

from __future__ import annotations

import pytest

from rocwheel.distributions.formats.yanked import yanked_reason


@pytest.mark.parametrize(
    ("value", "reason"), [(True, ""), ("bad code", "bad code"), (False, None), ("", None), (None, None)]
)
def test_a_value_that_counts_as_true_yanks_a_file(value: bool | str | None, reason: str | None) -> None:
    assert yanked_reason(value) == reason
