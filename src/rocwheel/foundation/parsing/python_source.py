"""Python's own parser for source code that anybody may have written, safe to call from several threads."""

from __future__ import annotations

import ast
import warnings
from threading import Lock

__all__ = ["parse_python"]

# Until Python 3.12, the parser counts the depth of all threads in one place: of two that parse at once, one may fail
# with "AST constructor recursion depth mismatch".
_LOCK = Lock()


def parse_python(text: str | bytes, name: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a module, called ``name`` in errors, without running it and without its warnings.

    Raises `SyntaxError`, `ValueError`, `RecursionError` or `MemoryError` for a text that Python can't read.
    """
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, name)
