"""The program that runs a script, by its first line (``execve(2)``), also where ``env(1)`` looks for it."""

from __future__ import annotations

import posixpath
import re

__all__ = ["HEAD", "script_interpreter"]

HEAD = 256
"""Bytes of a file that Linux looks at."""
_LINE = re.compile(rb"#![ \t]*([^\n]+)")
_SPLIT = re.compile(r"-[iv]*S|--split-string=")
"""The option of ``env`` that has the command in the same word; other options come before it."""


def script_interpreter(head: bytes) -> str | None:
    """Return the path of the interpreter of a script, or the name that ``env`` looks for; None for other files.

    ``head`` are the first `HEAD` bytes of the file.
    """
    line = _LINE.match(head[:HEAD])
    words = line[1].decode("utf-8", "replace").split() if line else []
    if not words:
        return None
    return _looked_for(words[1:]) or words[0] if posixpath.basename(words[0]) == "env" else words[0]


def _looked_for(words: list[str]) -> str | None:
    """Return the program among the arguments of ``env``, which takes options and variables before it."""
    given = (_SPLIT.sub("", word, count=1) if _SPLIT.match(word) else word for word in words)
    return next((word for word in given if word and not word.startswith("-") and "=" not in word), None)
