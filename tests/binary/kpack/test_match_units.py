"""Tests of telling units apart by their kernels."""

from __future__ import annotations

import pytest

from rocwheel.binary.kpack.match_units import match_units

A, B, C = (frozenset({name, "common"}) for name in "abc")


@pytest.mark.parametrize(
    ("kernels", "reference", "expected"),
    [
        ({0: A, 1: B, 2: C}, {0: A, 1: B, 2: C}, {0: 0, 1: 1, 2: 2}),
        ({0: A, 1: C}, {0: A, 1: B, 2: C}, {0: 0, 1: 2}),
        ({0: B, 1: C}, {0: A, 1: B, 2: C}, {0: 1, 1: 2}),
        ({0: A}, {0: A, 1: A}, None),
        ({0: A, 1: B}, {0: A, 1: C}, None),
        ({}, {0: A}, None),
    ],
)
def test_units_are_told_apart_by_their_kernels(
    kernels: dict[int, frozenset[str]], reference: dict[int, frozenset[str]], expected: dict[int, int] | None
) -> None:
    assert match_units(kernels, reference) == expected
