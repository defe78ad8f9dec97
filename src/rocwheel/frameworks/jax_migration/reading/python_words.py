"""Words of commands that Python makes: string constants, f-strings, ``%`` and ``+``; the rest are references."""

from __future__ import annotations

import ast
import re

from rocwheel.frameworks.jax.words import MARKS, reference
from rocwheel.frameworks.jax_migration.build_py import TOOL, TOOL_PATH

__all__ = ["python_word"]

_FORMAT = re.compile(r"%(?:\((?P<name>\w+)\))?(?P<kind>[sdi%])")
_LONGEST = 200


def python_word(node: ast.expr) -> str:
    """Return the word that an expression makes: what only the running program knows is a reference."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _literal(node, node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(python_word(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        plain = node.conversion == -1 and node.format_spec is None
        return python_word(node.value) if plain else _expression(ast.JoinedStr([node]))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return python_word(node.left) + python_word(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _formatted(node)
    return TOOL_PATH if _ends_with_tool(node) else _expression(node)


def _literal(node: ast.expr, text: str) -> str:
    return _expression(node) if MARKS & set(text) else text


def _expression(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return reference(text if len(text) <= _LONGEST and not MARKS & set(text) else "...", "python")


def _formatted(node: ast.BinOp) -> str:
    """Return what ``TEXT % VALUES`` makes."""
    if not (isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)):
        return _expression(node)
    values = list(node.right.elts) if isinstance(node.right, ast.Tuple) else [node.right]
    parts, end = [], 0
    text = node.left.value
    for match in _FORMAT.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        if match["kind"] == "%":
            parts.append("%")
        elif match["name"]:
            parts.append(_expression(ast.Subscript(node.right, ast.Constant(match["name"]), ast.Load())))
        elif values:
            parts.append(python_word(values.pop(0)))
        else:
            return _expression(node)
    return "".join([*parts, text[end:]])


def _ends_with_tool(node: ast.expr) -> bool:
    return any(
        isinstance(item, ast.Constant) and isinstance(item.value, str) and item.value.rpartition("/")[2] == TOOL
        for item in ast.walk(node)
    )
