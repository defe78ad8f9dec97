"""Which zstd level is tried next for a bundle that outgrows its place."""

from __future__ import annotations

import pytest

from rocwheel.binary.bundles.storage import stronger_level

ROOM = 100 << 20


@pytest.mark.parametrize(
    ("level", "ratio", "expected"),
    [
        (3, 1.2, 9),
        (3, 1.3, 15),
        (3, 1.9, 19),
        (3, 2.05, 22),
        (9, 2.15, 22),
        (15, 2.15, 22),
        (15, 2.2, None),
        (19, 1.05, 22),
        (19, 1.1, None),
        (20, 1.1, None),
        (22, 1.01, None),
    ],
)
def test_the_next_level_is_the_lowest_that_may_make_large_code_fit(
    level: int, ratio: float, expected: int | None
) -> None:
    assert stronger_level(level, 1 << 30, int(ROOM * ratio), ROOM) == expected


def test_every_higher_level_is_tried_for_small_code() -> None:
    assert [stronger_level(level, 1 << 20, 5 << 20, 1 << 20) for level in (3, 9, 15, 19, 22)] == [9, 15, 19, 22, None]
