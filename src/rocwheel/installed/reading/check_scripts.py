"""Commands of a distribution (console scripts) whose function its modules lack: they fail for whoever runs them."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from rocwheel.core.decoding import parse_python
from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.installed.tree import MetadataProblem
from rocwheel.wheels.metadata import SCRIPT_GROUPS, parse_entry_points

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

__all__ = ["MOST_MODULE", "find_script_problems"]

MOST_MODULE: Final = 256 << 10
"""Bytes of a module that is judged: Python's syntax trees take three hundred times the room of the text."""
_MOST_TOGETHER = 1 << 20
"""Bytes of all modules of a distribution that are judged."""

_REFERENCE = re.compile(r"(?P<module>[\w.]+)\s*(?::\s*(?P<attribute>[\w.]+)\s*)?(?:\[.*\]\s*)?")
_BUILT = (".so", ".pyd")
_DYNAMIC = {"globals", "vars", "setattr", "exec"}
"""Calls by which a module may get names that its text doesn't define."""


def find_script_problems(
    text: bytes, paths: Collection[str], read: Callable[[str], bytes | None]
) -> Iterator[MetadataProblem]:
    """Yield what is wrong with the commands in ``entry_points.txt``.

    ``paths`` are those of the distribution in site-packages; ``read`` returns the content of one, none for one that is
    not judged. Nor are modules of other distributions, such whose names only show when they run, and those beyond a
    bound of size.
    """
    try:
        groups = parse_entry_points("", text)
    except InputError as e:
        yield MetadataProblem(e.found, ("unreadable", "entry_points.txt"))
        return
    modules = _Modules(read)
    for group in SCRIPT_GROUPS:
        for name, reference in groups.get(group, {}).items():
            if found := _problem(reference, paths, modules):
                yield MetadataProblem(f"the command {quoted(name)} {found}", ("script", name))


class _Modules:
    """The names that modules bind, each read once; no tree is kept."""

    def __init__(self, read: Callable[[str], bytes | None]) -> None:
        self._read, self._left = read, _MOST_TOGETHER
        self._names: dict[str, frozenset[str] | None] = {}

    def names(self, path: str) -> frozenset[str] | None:
        """Return the names that a module binds anywhere, and ``*`` where it may bind others; none if not judged."""
        if path not in self._names:
            self._names[path] = self._parsed(path)
        return self._names[path]

    def _parsed(self, path: str) -> frozenset[str] | None:
        text = self._read(path) if self._left else None
        if text is None or len(text) > MOST_MODULE:
            return None
        self._left = max(self._left - len(text), 0)
        try:
            return frozenset(name for node in ast.walk(parse_python(text, path)) for name in _bound(node))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _problem(reference: str, paths: Collection[str], modules: _Modules) -> str:
    """Return what is wrong with an object reference; empty if nothing is known to be."""
    match = _REFERENCE.fullmatch(reference.strip())
    if match is None or not match["attribute"]:
        return f"has no function: {quoted(reference)} is not like module:function"
    module = match["module"].replace(".", "/")
    if path := next((one for one in (f"{module}.py", f"{module}/__init__.py") if one in paths), ""):
        names, name = modules.names(path), match["attribute"].partition(".")[0]
        if names is None or name in names or names & {"*", "__getattr__"}:
            return ""
        return f"calls {name} of {path}, which doesn't define it"
    is_own = f"{module.partition('/')[0]}/__init__.py" in paths
    is_built = any(one.startswith(f"{module}.") and one.endswith(_BUILT) for one in paths)
    return f"calls a function of {match['module']}, which the package lacks" if is_own and not is_built else ""


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _DYNAMIC:
        yield "*"
