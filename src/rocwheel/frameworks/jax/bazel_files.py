"""Parses and edits BUILD and ``.bzl`` files, and records the positions of their parts.

Starlark has the syntax of Python (Bazel's documentation, "Starlark language"). Therefore, Python's ``ast`` module
parses these files.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from rocwheel.core.decoding import parse_python
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOT_ASCII = re.compile(rb"[^\x00-\x7f]")
"""Bytes that can't occur in names and labels.

A single question mark replaces each byte, so that all positions remain the same.
"""


class StarlarkFile:
    """A Starlark file with its syntax tree. Positions are byte offsets.

    Raises `InputError` for a syntax error.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.data = text.encode(errors="surrogateescape")
        starts = [0]
        for line in self.data.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        self._line_starts = starts
        try:
            self.tree = parse_python(_NOT_ASCII.sub(b"?", self.data), path)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
            number = e.lineno if isinstance(e, SyntaxError) else None
            place = f" (line {number})" if number else ""
            raise InputError(path, f"isn't valid Starlark{place}", remedy="Correct the file.") from e

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """Yield all calls of the functions with these names, including nested calls."""
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.Call) and called(node) in names)

    def source(self, node: ast.expr | ast.stmt) -> str:
        """Return the source text of a node."""
        return self.data[self.start(node) : self.end(node)].decode(errors="surrogateescape")

    def start(self, node: ast.expr | ast.stmt) -> int:
        """Return the offset of a node's first byte."""
        return self._line_starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Return the offset after a node's last byte."""
        return self._line_starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def line_start(self, number: int) -> int:
        """Return the offset of a line; line numbers start at 1.

        For the line after the last line, return the end of the file.
        """
        return min(self._line_starts[number - 1], len(self.data))


def called(node: ast.Call | ast.stmt) -> str:
    """Return the name of the called function, or an empty string if the node isn't a call or a call statement."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return called(node.value)
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


Splice = tuple[int, int, str]
"""The start and end of a text range, in bytes, and its replacement."""


def spliced(file: StarlarkFile, splices: list[Splice]) -> str:
    """Return the file's text with the replacements applied. Splices must not overlap."""
    data = file.data
    for start, end, new in sorted(splices, reverse=True):
        data = data[:start] + new.encode(errors="surrogateescape") + data[end:]
    return data.decode(errors="surrogateescape")
