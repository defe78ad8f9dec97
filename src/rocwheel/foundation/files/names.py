"""Whether a text can be the name of a file in a folder: names from inputs may hold anything."""

from __future__ import annotations

__all__ = ["is_file_name", "is_utf8"]

_LONGEST = 255
"""Bytes, of Linux and of all its usual file systems."""


def is_file_name(text: str) -> bool:
    r"""Return whether a text can be a file's name: one part of a path that leads nowhere else.

    >>> [is_file_name(text) for text in ("con", "x.whl", "", "..", "a/b", "a\0b", "x" * 256)]
    [True, True, False, False, False, False, False]
    """
    if text in {"", ".", ".."} or not {"/", "\0"}.isdisjoint(text):
        return False
    return len(text.encode(errors="replace")) <= _LONGEST


def is_utf8(text: str) -> bool:
    r"""Return whether a text can be written: bytes of names and words that are not UTF-8 are surrogates (:pep:`383`).

    >>> is_utf8("é"), is_utf8("\udcff")
    (True, False)
    """
    return not any("\ud800" <= letter <= "\udfff" for letter in text)
