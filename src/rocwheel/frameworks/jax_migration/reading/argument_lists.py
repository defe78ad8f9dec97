"""Lists of arguments that the functions of a Python file make, step by step."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import msgspec

from rocwheel.frameworks.jax_migration.reading.old_call import OptionalWords
from rocwheel.frameworks.jax_migration.reading.python_words import python_word

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["ArgumentList", "argument_lists"]

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


class ArgumentList(msgspec.Struct):
    """A list of arguments, with what is added to it later and under which conditions."""

    first_line: int
    last_line: int
    words: list[str]
    depth: int
    """How many conditions it stands under itself."""
    function: ast.FunctionDef | ast.AsyncFunctionDef | None
    optional: list[OptionalWords]


def argument_lists(tree: ast.Module) -> Iterator[ArgumentList]:
    """Yield the lists of arguments of a file that hold a string."""
    yield from _Scope(None).lists(tree.body)
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            yield from _Scope(node).lists(node.body)


class _Scope:
    """The lists of one function, or of the module, by the names of their variables."""

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef | None) -> None:
        self.function = function
        self.named: dict[str, ArgumentList] = {}
        self.found: list[ArgumentList] = []

    def lists(self, body: Sequence[ast.stmt]) -> list[ArgumentList]:
        self._walk(body, [])
        return self.found

    def _walk(self, body: Sequence[ast.stmt], conditions: list[str]) -> None:
        for statement in body:
            if isinstance(statement, (*_Function, ast.ClassDef)):
                continue
            self._statement(statement, conditions)
            for inner, condition in _inner_bodies(statement):
                self._walk(inner, [*conditions, condition] if condition else conditions)

    def _statement(self, statement: ast.stmt, conditions: list[str]) -> None:
        expressions = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)]
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            name = statement.targets[0]
            made = self._made(statement.value, len(conditions))
            if made and isinstance(name, ast.Name):
                self.named[name.id] = made
                return
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            self._extend(statement.target.id, statement.value, conditions)
            return
        for expression in expressions:
            for node in ast.walk(expression):
                self._node(node, conditions)

    def _node(self, node: ast.AST, conditions: list[str]) -> None:
        if isinstance(node, (ast.List, ast.Tuple)):
            self._made(node, len(conditions))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
            owner = node.func.value
            if isinstance(owner, ast.Name) and node.func.attr == "append":
                self._extend(owner.id, ast.List([node.args[0]], ast.Load()), conditions, node.lineno)
            elif isinstance(owner, ast.Name) and node.func.attr == "extend":
                self._extend(owner.id, node.args[0], conditions, node.lineno)

    def _made(self, node: ast.expr, depth: int) -> ArgumentList | None:
        words = _words(node)
        if words is None:
            return None
        made = ArgumentList(node.lineno, node.end_lineno or node.lineno, words, depth, self.function, [])
        self.found.append(made)
        return made

    def _extend(self, name: str, node: ast.expr, conditions: list[str], line: int = 0) -> None:
        grown = self.named.get(name)
        if grown is None:
            return
        words = _words(node)
        if words is None:
            words = ["*" + python_word(node)]
        line = line or node.lineno
        if len(conditions) > grown.depth:
            grown.optional.append(OptionalWords(line, ", ".join(conditions[grown.depth :]), tuple(words)))
        else:
            grown.words += words
            grown.last_line = max(grown.last_line, line)


def _words(node: ast.expr) -> list[str] | None:
    """Return the elements of a list, a tuple or a sum of them; one that brings several begins with an asterisk."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return [
            "*" + python_word(item.value) if isinstance(item, ast.Starred) else python_word(item) for item in node.elts
        ]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _words(node.left), _words(node.right)
        if left is None and right is None:
            return None
        return [
            *(["*" + python_word(node.left)] if left is None else left),
            *(["*" + python_word(node.right)] if right is None else right),
        ]
    return None


def _inner_bodies(statement: ast.stmt) -> Iterator[tuple[Sequence[ast.stmt], str]]:
    """Yield the blocks of a statement with the condition under which each runs, empty if it always does."""
    condition, opposite = "", ""
    if isinstance(statement, (ast.If, ast.While)):
        text = ast.unparse(statement.test)
        condition, opposite = f"{'if' if isinstance(statement, ast.If) else 'while'} {text}", f"if not ({text})"
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        condition = opposite = f"for {ast.unparse(statement.target)} in {ast.unparse(statement.iter)}"
    yield getattr(statement, "body", []), condition
    yield getattr(statement, "orelse", []), opposite
    yield getattr(statement, "finalbody", []), ""
    for handler in getattr(statement, "handlers", []):
        yield handler.body, "after an exception"
    for case in getattr(statement, "cases", []):
        yield case.body, f"case {ast.unparse(case.pattern)}"
