"""Long inputs of one repeated word."""

from __future__ import annotations

import re

from trials.fuzz.harness import Harness
from trials.fuzz.long_inputs import LENGTH, long_inputs, try_long_inputs


def _harness(run: object) -> Harness:
    return Harness("test.it", run, lambda: [b"seed"], tokens=(b"token",))  # type: ignore[arg-type]


def test_words_and_tokens_are_repeated_with_and_without_a_seed() -> None:
    inputs = list(long_inputs(_harness(bytes)))
    assert b"token" * (LENGTH // 5) in inputs
    assert b"seed" + b"../" * (LENGTH // 3) in inputs


def test_a_linear_harness_has_no_fault_and_a_raising_harness_has_one() -> None:
    assert try_long_inputs(_harness(lambda data: re.sub(rb"a+", b"", data))) == ()
    (fault,) = try_long_inputs(_harness(lambda data: {b"a": 1}[data[:1]]))
    assert fault.kind == "crash"
