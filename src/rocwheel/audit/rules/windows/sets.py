"""Rules on DLLs as a set: names that two have, names that files don't have, and circles."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.audit.dll_uses import When, Where
from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.distributions.formats.windows_names import fold_case
from rocwheel.foundation.counting import first_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rocwheel.audit.subject import Subject
    from rocwheel.installed.tree import InstalledFile

__all__ = ["RULES", "find_circles"]

_MANGLED = re.compile(r"-[0-9a-f]{8,64}(?=\.dll$)")
"""What delvewheel adds to the names of DLLs that it copies; it also changes who imports them."""
_EXTENSION_MODULE, _MINGW_SUFFIX = ".pyd", ".dll.a"


def _clashes(subject: Subject) -> Iterator[Evidence]:
    """Find DLLs of one name in several packages: one is loaded, by whoever comes first."""
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
        places = first_of([f"{file.path} of {_owner(subject, file)}" for file in others])
        found = f"has the name of {places}, with {alike} content: a process has the one that is loaded first"
        facts = (name.lower(), *(_owner(subject, file) for file in others))
        yield Evidence(audited[0].source, found, facts=facts)


def _owner(subject: Subject, file: InstalledFile) -> str:
    owner = subject.tree.owners.get(file.distribution)
    return owner.name if owner and owner.name else "no package"


def _renamed(subject: Subject) -> Iterator[Evidence]:
    for file, report in subject.windows.audited:
        exports = report.pe.exports if report.pe else None
        if exports is None or not exports.dll or not report.is_dll:
            continue
        if fold_case(exports.dll) not in {fold_case(file.name), fold_case(_MANGLED.sub("", file.name))}:
            found = f"was linked as {exports.dll}: what was linked with it looks for that name"
            yield Evidence(file.source, found, facts=(exports.dll,))


def _circles(subject: Subject) -> Iterator[Evidence]:
    """Find DLLs of several folders that need each other, so that none can be loaded first."""
    edges: dict[str, list[str]] = defaultdict(list)
    files: dict[str, InstalledFile] = {}
    for use in subject.dll_uses:
        if (
            use.provider is not None
            and use.when is When.AT_ONCE
            and use.where in {Where.OWN, Where.ADDED, Where.OUT_OF_REACH}
        ):
            edges[use.user.path].append(use.provider.path)
            files[use.user.path] = use.user
    for circle in find_circles(edges):
        if len({path.rpartition("/")[0] for path in circle}) > 1:
            others = circle[1:]
            found = f"needs DLLs of other folders that need it: {first_of(others)}"
            yield Evidence(files[circle[0]].source, found, facts=(*others,))


def find_circles(edges: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the largest sets of nodes that all lead to each other, of two nodes or more, each sorted.

    By Tarjan's algorithm, without recursion: damaged or made-up files may have chains of any length.
    """
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    kept: list[str] = []
    on_path: set[str] = set()
    found = []
    for root in sorted(edges):
        work = [(root, iter(edges.get(root, ())))] if root not in order else []
        while work:
            node, rest = work[-1]
            if node not in order:
                order[node] = low[node] = len(order)
                kept.append(node)
                on_path.add(node)
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    at = kept.index(node)
                    circle, kept[at:] = kept[at:], []
                    on_path.difference_update(circle)
                    found += [tuple(sorted(circle))] if len(circle) > 1 else []
            elif following not in order:
                work.append((following, iter(edges.get(following, ()))))
            elif following in on_path:
                low[node] = min(low[node], order[following])
    return sorted(found)


def _import_libraries(subject: Subject) -> Iterator[Evidence]:
    if not subject.windows.is_platform:
        return
    paths = {fold_case(file.path) for file in subject.tree.files}
    for file in subject.tree.audited:
        if not file.name.lower().endswith(_MINGW_SUFFIX):
            continue
        stem = file.path[: -len(_MINGW_SUFFIX)]
        if fold_case(stem + _EXTENSION_MODULE) in paths:
            # Nobody links with an extension module.
            continue
        plain = stem.rpartition("/")[2].removeprefix("lib")
        expected = f"{file.folder}/{plain}.lib".lstrip("/")
        is_there = any(fold_case(name) in paths for name in (expected, f"{stem}.lib"))
        beside = f"beside {plain}.lib" if is_there else f"and {plain}.lib is missing"
        found = f"is an import library as MinGW spells it, {beside}: Visual C++ and CMake look for the latter"
        yield Evidence(file.source, found)


RULES = (
    Rule(
        "dll-clash",
        Severity.WARNING,
        "DLLs of different packages have different names.",
        "Have one package bring it, and the other require that; or rename one of them, as delvewheel does with a hash.",
        _clashes,
    ),
    Rule(
        "dll-renamed",
        Severity.WARNING,
        "A DLL has the name that it was linked with.",
        "Link it with /OUT:NAME as the file is called, or rename the file.",
        _renamed,
    ),
    Rule(
        "dll-circle",
        Severity.WARNING,
        "DLLs of different folders don't need each other in a circle.",
        "Take out one of the imports, or delay-load it: nobody can load such DLLs one after the other by their path.",
        _circles,
    ),
    Rule(
        "import-library",
        Severity.WARNING,
        "Import libraries are called NAME.lib.",
        "Have the build name it so (CMAKE_IMPORT_LIBRARY_PREFIX and CMAKE_IMPORT_LIBRARY_SUFFIX), and ship that alone.",
        _import_libraries,
    ),
)
