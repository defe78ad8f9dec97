"""Names from inputs as a page shows them: invisible characters and bytes that are no text become escapes."""

from __future__ import annotations

import re

from rocwheel.foundation.files.reading.stand_ins import shown

__all__ = ["shown_text"]

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufff9-\uffff]"
)
"""Control characters, those without width or that turn the direction of text around, and what UTF-8 can't hold."""


def shown_text(text: str) -> str:
    r"""Return a name as text: ``\xNN`` for a byte that is none, and for control characters.

    What was brought from elsewhere goes by its name there.
    """
    return _UNSEEN.sub(_escape, shown(text))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte, as Python's surrogateescape has it
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 1 << 8 else f"\\u{code:04x}"
