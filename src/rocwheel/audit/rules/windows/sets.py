"""Rules about several DLLs: DLLs with the same name, names without a file, and circular dependencies."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.audit.dll_uses import DllPlace, LoadTime
from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.core.messages import first_of
from rocwheel.core.names import fold_case
from rocwheel.environment.known_libraries import gnu_import_libraries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rocwheel.audit.subject import Subject
    from rocwheel.environment.tree import InstalledFile

_MANGLED = re.compile(r"-[0-9a-f]{8,64}(?=\.dll$)")
"""The suffix that delvewheel adds to the names of copied DLLs.

delvewheel also changes the files that import them.
"""
_EXTENSION_MODULE = ".pyd"


def _clashes(subject: Subject) -> Iterator[Evidence]:
    """Find DLLs with the same name in several packages. A process uses the DLL that is loaded first."""
    if not subject.windows.is_platform or subject.tree.is_prefix:
        return
    for name, files in sorted(subject.windows.by_name.items()):
        # Python loads its extension modules by their path.
        if name.endswith(fold_case(_EXTENSION_MODULE)):
            continue
        first_of_each = {file.distribution: file for file in reversed(files)}
        held = sorted(first_of_each.values(), key=lambda file: file.path)
        audited = [file for file in held if not subject.tree.is_context(file)]
        if len(held) < 2 or not audited:
            continue
        others = [file for file in held if file is not audited[0]]
        alike = "the same" if len({file.sha256 for file in held}) == 1 and held[0].sha256 else "different"
        places = first_of([f"{file.path} in {_owner(subject, file)}" for file in others])
        found = f"has the same name as {places}, with {alike} contents: a process uses the DLL that is loaded first"
        facts = (name.lower(), *(_owner(subject, file) for file in others))
        yield Evidence(audited[0].source, found, facts=facts)


def _owner(subject: Subject, file: InstalledFile) -> str:
    owner = subject.tree.owners.get(file.distribution)
    return owner.name if owner and owner.name else "no package"


def _renamed(subject: Subject) -> Iterator[Evidence]:
    for file, report in subject.windows.audited:
        exports = report.pe.exports if report.pe else None
        # No file links with an extension module, because Python opens extension modules by their path.
        if exports is None or not exports.dll or not report.is_dll or file.name.lower().endswith(".pyd"):
            continue
        if fold_case(exports.dll) not in {fold_case(file.name), fold_case(_MANGLED.sub("", file.name))}:
            found = f"was linked as {exports.dll}: files that link with this DLL search for that name"
            yield Evidence(file.source, found, facts=(exports.dll,))


def _circles(subject: Subject) -> Iterator[Evidence]:
    """Find DLLs in several folders that need each other, so that none of them can be loaded first."""
    edges: dict[str, list[str]] = defaultdict(list)
    files: dict[str, InstalledFile] = {}
    for use in subject.dll_uses:
        if (
            use.provider is not None
            and use.when is LoadTime.AT_ONCE
            and use.where in {DllPlace.OWN, DllPlace.ADDED, DllPlace.OUT_OF_REACH}
        ):
            edges[use.user.path].append(use.provider.path)
            files[use.user.path] = use.user
    for circle in find_circles(edges):
        if len({path.rpartition("/")[0] for path in circle}) > 1:
            others = circle[1:]
            found = f"needs DLLs in other folders that also need it: {first_of(others)}"
            yield Evidence(files[circle[0]].source, found, facts=(*others,))


def find_circles(edges: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the largest sets of two or more nodes that can all reach each other. Each set is sorted.

    This function uses Tarjan's algorithm without recursion, because damaged or malicious files might have chains of any
    length.
    """
    walk = _Walk(edges)
    for root in sorted(edges):
        walk.visit(root)
    return sorted(walk.circles)


class _Walk:
    """A traversal that enters and leaves every node once."""

    def __init__(self, edges: Mapping[str, Sequence[str]]) -> None:
        self.circles: list[tuple[str, ...]] = []
        self._edges = edges
        self._number: dict[str, int] = {}
        """The number of each visited node, in the order of the visits."""
        self._lowest: dict[str, int] = {}
        """For each node, the lowest number found so far among the nodes that can be reached from it."""
        self._open: dict[str, None] = {}
        """Visited nodes whose cycle hasn't been determined yet, in the order of the visits."""

    def visit(self, root: str) -> None:
        path = [] if root in self._number else [self._enter(root)]
        while path:
            node, rest = path[-1]
            following = next(rest, None)
            if following is None:
                path.pop()
                self._leave(node)
                if path:
                    self._lead(path[-1][0], self._lowest[node])
            elif following not in self._number:
                path.append(self._enter(following))
            elif following in self._open:
                self._lead(node, self._number[following])

    def _enter(self, node: str) -> tuple[str, Iterator[str]]:
        self._number[node] = self._lowest[node] = len(self._number)
        self._open[node] = None
        return node, iter(self._edges.get(node, ()))

    def _lead(self, node: str, number: int) -> None:
        self._lowest[node] = min(self._lowest[node], number)

    def _leave(self, node: str) -> None:
        """Remove the cycle whose first visited node is this one."""
        if self._lowest[node] != self._number[node]:
            return
        circle = [self._open.popitem()[0]]
        while circle[-1] != node:
            circle.append(self._open.popitem()[0])
        if len(circle) > 1:
            self.circles.append(tuple(sorted(circle)))


def _import_libraries(subject: Subject) -> Iterator[Evidence]:
    if not subject.windows.is_platform:
        return
    audited = {file.path: file for file in reversed(subject.tree.audited)}
    for library in gnu_import_libraries(file.path for file in subject.tree.files):
        if library.path not in audited:
            continue
        name = posixpath.basename(library.beside or library.expected)
        beside = f"next to {name}" if library.beside else f"and {name} is missing"
        found = f"is a MinGW import library, {beside}: Visual C++ and CMake search for {name}"
        yield Evidence(audited[library.path].source, found)


RULES = (
    Rule(
        "dll-clash",
        Severity.WARNING,
        "DLLs in different packages have different names.",
        (
            "Ship the DLL in one package and require that package in the other. Or rename one DLL, for "
            "example, by adding a hash, as delvewheel does."
        ),
        _clashes,
    ),
    Rule(
        "dll-renamed",
        Severity.WARNING,
        "A DLL's file name is the name that it was linked with.",
        "Link with /OUT:NAME, where NAME is the file's name, or rename the file.",
        _renamed,
    ),
    Rule(
        "dll-circle",
        Severity.WARNING,
        "DLLs in different folders have no circular dependencies.",
        ("Remove or delay-load one of the imports. DLLs that need each other can't be loaded one at a time by path."),
        _circles,
    ),
    Rule(
        "import-library",
        Severity.WARNING,
        "Import libraries are named NAME.lib.",
        ("Set the name with CMAKE_IMPORT_LIBRARY_PREFIX and CMAKE_IMPORT_LIBRARY_SUFFIX, and ship only that file."),
        _import_libraries,
    ),
)
