"""What is taken for a digest."""

from __future__ import annotations

import pytest

from rocwheel.distributions.formats.digests import is_sha256


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("a0" * 32, True), ("A0" * 32, False), ("a0" * 31, False), ("a0" * 32 + "\n", False), ("g0" * 32, False)],
)
def test_64_hexadecimal_digits_in_small_letters_are_a_sha256(text: str, is_one: bool) -> None:
    assert is_sha256(text) is is_one
