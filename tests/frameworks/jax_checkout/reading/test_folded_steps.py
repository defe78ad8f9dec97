"""Steps of workflows whose lines YAML joins to one."""

from __future__ import annotations

import pytest

from rocwheel.frameworks.jax_checkout.reading.folded_steps import FoldedStep, folded_step


@pytest.mark.parametrize(
    ("text", "first", "last", "expected"),
    [
        ("  - run: >-\n      one\n      two\n", 1, 3, FoldedStep(0, "  - ", is_whole=True)),
        ("  - run: >-\n      one\n      two\n", 2, 3, FoldedStep(0, "  - ", is_whole=False)),
        ("  - name: x\n    run:\n      one\n    env: {}\n", 2, 3, FoldedStep(1, "    ", is_whole=True)),
        ("  - run: one\n      two\n", 1, 2, FoldedStep(0, "  - ", is_whole=False)),
        ('  - "run": > # why\n\n      one\n\n  - run: |\n      other\n', 2, 3, FoldedStep(0, "  - ", is_whole=True)),
        ("  - run: |\n      one\n      two\n", 1, 3, None),
        ("  - run: one\n  - run: two\n", 1, 2, None),
        ("  - with:\n      command: one\n", 1, 2, None),
        ("one\n", 0, 1, None),
    ],
)
def test_a_folded_step_is_found_by_its_lines(text: str, first: int, last: int, expected: FoldedStep | None) -> None:
    assert folded_step(text.splitlines(), first, last) == expected
