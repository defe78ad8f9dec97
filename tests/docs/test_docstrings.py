"""Every public name is documented, with the errors of the project that it raises itself."""

from __future__ import annotations

import ast
import doctest
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = ROOT / "src/rocwheel"
_Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _public(node: ast.Module | ast.ClassDef, lead: str) -> Iterator[tuple[str, _Documented]]:
    """Yield each public class, function and method with its place."""
    for part in node.body:
        if isinstance(part, _Documented) and not part.name.startswith("_"):
            yield f"{lead}{part.name}", part
            if isinstance(part, ast.ClassDef):
                yield from _public(part, f"{lead}{part.name}.")


@cache
def _names() -> dict[str, _Documented]:
    trees = {path.relative_to(SOURCE): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
    return {name: node for path, tree in trees.items() for name, node in _public(tree, f"{path}: ")}


@cache
def _errors() -> set[str]:
    """Return the names of the project's own errors."""
    return {node.name for node in _names().values() if isinstance(node, ast.ClassDef) and node.name.endswith("Error")}


def _raised(node: _Documented) -> set[str]:
    raised = (part.exc for part in ast.walk(node) if isinstance(part, ast.Raise))
    calls = (call.func for call in raised if isinstance(call, ast.Call))
    return {
        call.func.id for call in calls if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    } & _errors()


def test_every_public_name_has_a_docstring() -> None:
    assert len(_names()) > 3000
    assert [name for name, node in _names().items() if not ast.get_docstring(node)] == []


def test_docstrings_say_which_errors_are_raised() -> None:
    """Commands are left out: they print errors and end with a status that docs/commands.md explains."""
    silent = [
        name
        for name, node in _names().items()
        if not isinstance(node, ast.ClassDef) and not name.startswith("cli/") and _raised(node)
        if not any(word in (ast.get_docstring(node) or "").lower() for word in ("raise", "refuse"))
    ]
    assert silent == []


def test_examples_in_docstrings_print_the_documented_output() -> None:
    paths = [path.relative_to(SOURCE.parent) for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text()]
    results = {str(path): doctest.testmod(import_module(".".join(path.with_suffix("").parts))) for path in paths}
    assert len(results) > 10
    assert [path for path, result in results.items() if result.failed or not result.attempted] == []
