"""Names of files in folders: whether a text can be one, as inputs may hold anything, and how it is cut to fit."""

from __future__ import annotations

import os

__all__ = ["cut_name", "is_file_name", "is_utf8"]

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


def cut_name(text: str, most: int) -> str:
    """Return as much of the beginning of a file's name as has ``most`` bytes, of whole characters.

    >>> cut_name("größe", 4), cut_name("name", 4)
    ('grö', 'name')
    """
    text = text[:most]
    while len(os.fsencode(text)) > most:
        text = text[:-1]
    return text


def is_utf8(text: str) -> bool:
    r"""Return whether a text can be written: bytes of names and words that are not UTF-8 are surrogates (:pep:`383`).

    >>> is_utf8("é"), is_utf8("\udcff")
    (True, False)
    """
    return not any("\ud800" <= letter <= "\udfff" for letter in text)
