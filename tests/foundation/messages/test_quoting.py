"""Quotes of what strangers wrote."""

from __future__ import annotations

import pytest

from rocwheel.foundation.messages.quoting import quoted, shortened


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a'b\n", '"a\'b\\n"'),
        ("x" * 200, f"'{'x' * 200}'"),
        ("x" * 201, f"'{'x' * 200}'... (201 characters)"),
        (b"x" * 10_000, f"b'{'x' * 200}'... (10000 bytes)"),
    ],
)
def test_a_long_value_is_cut_and_its_length_given(value: str | bytes, text: str) -> None:
    assert quoted(value) == text


def test_a_long_message_is_cut_and_its_length_given() -> None:
    assert shortened("x" * 1000) == "x" * 1000
    assert shortened("x" * 1001) == f"{'x' * 1000}... (1001 characters)"
