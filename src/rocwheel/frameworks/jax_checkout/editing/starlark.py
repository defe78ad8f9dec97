"""BUILD and .bzl files, read with the place of everything in them.

Such files are Python as far as its parser is concerned (Bazel's documentation, "Starlark language"), so that Python's
own syntax tree tells where everything is.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from rocwheel.core.decoding import parse_python
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["StarlarkFile", "attribute", "called", "loaded_names", "string_attribute"]

_NOT_ASCII = re.compile(rb"[^\x00-\x7f]")
"""Bytes that names and labels don't have; each gives way to one, so that all keep their places."""


class StarlarkFile:
    """A file with its syntax tree; raises `InputError` for a text that has none. Places are in bytes."""

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
            raise InputError(path, f"can't be read as Starlark{place}", remedy="Mend it first.") from e

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """Yield the calls of functions with these names, wherever they stand."""
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.Call) and called(node) in names)

    def constants(self) -> dict[str, str]:
        """Return the strings that names are assigned at the top, by their names."""
        assignments = [node for node in self.tree.body if isinstance(node, ast.Assign)]
        return {
            target.id: node.value.value
            for node in assignments
            for target in node.targets
            if isinstance(target, ast.Name)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        }

    def strings(self) -> Iterator[str]:
        """Yield every string of the file."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value

    def source(self, node: ast.expr | ast.stmt) -> str:
        """Return what a node is written as."""
        return self.data[self.start(node) : self.end(node)].decode(errors="surrogateescape")

    def start(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        """Return where a node begins."""
        return self._line_starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Return where a node ends."""
        return self._line_starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def line_start(self, number: int) -> int:
        """Return where a line begins, counted from 1; the line behind the last one is the file's end."""
        return min(self._line_starts[number - 1], len(self.data))

    def before(self, node: ast.expr | ast.stmt | ast.keyword) -> bytes:
        """Return what stands before a node on its line."""
        return self.data[self.line_start(node.lineno) : self.start(node)]

    def indent(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        """Return the blanks that the line of a node begins with."""
        line = self.data[self.line_start(node.lineno) : self.line_start(node.lineno + 1)]
        return line[: len(line) - len(line.lstrip())].decode()


def called(node: ast.Call | ast.stmt) -> str:
    """Return the name of the function that a call, or a statement that is one, calls; empty for anything else."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return called(node.value)
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def attribute(call: ast.Call, name: str) -> ast.expr | None:
    """Return the value of an attribute of a rule, ``None`` if it is not given."""
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def string_attribute(call: ast.Call, name: str) -> str:
    """Return an attribute of a rule that is a plain string, else an empty one."""
    value = attribute(call, name)
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def loaded_names(node: ast.stmt) -> list[str]:
    """Return the names that a load brings, none for any other statement."""
    if called(node) != "load" or not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return []
    call = node.value
    names = [arg.value for arg in call.args[1:] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return [*names, *(keyword.arg for keyword in call.keywords if keyword.arg)]
