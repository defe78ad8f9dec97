"""The selector's METADATA is made of its PKG-INFO, whatever that ends in."""

from __future__ import annotations

from email import message_from_string

import pytest

from rocwheel.sdk.selector._archives import field_values, metadata_text

HEADER = "Metadata-Version: 2.2\nName: rocm\nVersion: 1.0\nDynamic: Requires-Dist\n"


@pytest.mark.parametrize("end", ["", "\n", "\n# ROCm\n"], ids=["no empty line", "no text", "text"])
def test_requirements_and_extras_become_headers(end: str) -> None:
    message = message_from_string(metadata_text(f"{HEADER}{end}", ["numpy"], {"x": [["b", ""]]}))
    assert message.items() == [
        ("Metadata-Version", "2.2"),
        ("Name", "rocm"),
        ("Version", "1.0"),
        ("Requires-Dist", "numpy"),
        ("Provides-Extra", "x"),
        ("Requires-Dist", "b; extra == 'x'"),
    ]


def test_a_unicode_line_separator_does_not_end_a_header() -> None:
    text = f"{HEADER}Summary: a\u2028Name: other\n"
    assert field_values(text, "Name") == ["rocm"]
    assert "Summary: a\u2028Name: other\n" in metadata_text(text, [], {})
