"""Measure the shape of the package: modules, folders, lines, imports, functions that are used once, and circles.

Usage: python scripts/measure_code.py [FOLDER]

FOLDER is the package's folder, ``src/rocwheel`` by default; its sample is left out. Circles count imports of functions
and of ``import_module`` with a literal name, too; those for type checkers alone don't count.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent


def main(folder: Path) -> None:
    """Print the measures, one a line."""
    paths = [path for path in sorted(folder.rglob("*.py")) if "sample" not in path.relative_to(folder).parts]
    texts = {path: path.read_text() for path in paths}
    trees = {_module(path, folder): ast.parse(text) for path, text in texts.items()}
    sizes = [len(text.splitlines()) for text in texts.values() if text.strip()]
    imports = sum(_import_lines(tree) for tree in trees.values())
    graph = {name: set(_imported(tree, trees)) - {name} for name, tree in trees.items()}
    for name, value in (
        ("modules that are not empty", len(sizes)),
        ("folders", len({path.parent for path in paths})),
        ("lines", sum(sizes)),
        ("lines of the median module", int(median(sizes))),
        ("share of import lines", f"{imports / sum(sizes):.1%}"),
        ("functions that are private and used once", _used_once(trees)),
        ("names in the longest module path", max(name.count(".") + 1 for name in trees)),
        ("modules in circles", _in_circles(graph)),
    ):
        print(f"{name:42} {value}")


def _module(path: Path, folder: Path) -> str:
    name = ".".join((folder.name, *path.relative_to(folder).with_suffix("").parts))
    return name.removesuffix(".__init__")


def _import_lines(tree: ast.Module) -> int:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def _imported(tree: ast.AST, known: dict[str, ast.Module]) -> Iterator[str]:
    """Yield the modules that a module imports at any time, but for type checkers."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{one.name}" for one in node.names] + [node.module]
        elif isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            names = [str(ast.literal_eval(node.args[0]))] if isinstance(node.args[0], ast.Constant) else []
        # A package that is named only on the way to one of its modules needs nothing of them.
        found = [name for name in names if name in known]
        yield from found[:-1] if len(found) > 1 and found[-1] == names[-1] else found
        yield from _imported(node, known)


def _used_once(trees: dict[str, ast.Module]) -> str:
    defined = [
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    once = 0
    for tree in trees.values():
        words = Counter(getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(tree))
        private = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name[:1] == "_"}
        once += sum(words[name] == 1 for name in private if not name.endswith("__"))
    return f"{once} of {len(defined)} ({once / len(defined):.0%})"


def _in_circles(graph: dict[str, set[str]]) -> int:
    """Return how many modules lie on a circle of imports: circles are cut open one by one."""
    left, found = {name: set(others) for name, others in graph.items()}, set[str]()
    while circle := _find_circle(left):
        found.update(circle)
        left[circle[1]].discard(circle[0])
    return len(found)


def _find_circle(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as e:
        return list(e.args[1])
    return []


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "src/rocwheel")
