"""Which libraries stand in for others on a GPU, as the SDK's Python code has to know when it loads libraries."""

from __future__ import annotations

import posixpath
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rocwheel.binary.code_objects.target_id import TargetId, parse_target_id
from rocwheel.device.editing.prune import serves
from rocwheel.targets.catalog.owned_targets import owned_targets
from rocwheel.targets.overlay_names import split_overlay_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rocwheel.packages.layout.placement import PlacedFile
    from rocwheel.packages.planning.selector.facts import SelectorFacts

__all__ = ["common_gpus", "overlaid_libraries"]


def overlaid_libraries(facts: SelectorFacts) -> dict[str, list[str]]:
    """Return, by the short name of each public library, the libraries to choose before it is loaded.

    These are the library itself and all that it needs, dependencies first, by their paths below the folder of its
    package. Only libraries are among them that others can stand in for; a public library without any is left out.
    """
    overlaid = _overlaid(facts)
    found: dict[str, list[str]] = {}
    for name, library in facts.recipe.libraries.items():
        files = _files(facts, library.package)
        pattern = f"{library.directory}/{library.pattern}"
        path = min((path for path in files if fnmatchcase(path, pattern) and not split_overlay_path(path)), default="")
        needed = [one for one in _dependencies_first(path, files, facts) if one in overlaid] if path else []
        if needed:
            found[name] = needed
    return found


def common_gpus(facts: SelectorFacts) -> list[str]:
    """Return the GPUs that can use every library that others stand in for, by the code that these keep for all."""
    overlaid = _overlaid(facts)
    kept = [
        [parse_target_id(text, source=path) for text in facts.basis.facts.targets.get(file.entry.source, ())]
        for package in facts.packages
        for path, file in package.placement.files.items()
        if path in overlaid and file.entry.source
    ]
    return [gpu for gpu in owned_targets() if kept and all(_have_code(codes, gpu) for codes in kept)]


def _have_code(codes: Iterable[TargetId], gpu: str) -> bool:
    """Return whether there is code for a GPU in some setting of its features: which one it has is not known."""
    return any(serves(code, TargetId(gpu)) for code in codes)


def _overlaid(facts: SelectorFacts) -> set[str]:
    """Return the libraries that others stand in for."""
    paths = (path for package in facts.packages for path in package.placement.files)
    return {split[0] for path in paths if (split := split_overlay_path(path))}


def _files(facts: SelectorFacts, key: str) -> dict[str, PlacedFile]:
    return {
        path: file for package in facts.packages if package.key == key for path, file in package.placement.files.items()
    }


def _dependencies_first(path: str, files: Mapping[str, PlacedFile], facts: SelectorFacts) -> list[str]:
    """Return a library and all that it needs of its package, dependencies first."""
    by_name = {posixpath.basename(other): other for other in reversed(list(files))}
    order: dict[str, None] = {}
    entered: set[str] = set()

    def visit(library: str) -> None:
        if library in entered:
            return
        entered.add(library)
        for needed in _needed(files[library], facts):
            if needed in by_name:
                visit(by_name[needed])
        order[library] = None

    visit(path)
    return list(order)


def _needed(file: PlacedFile, facts: SelectorFacts) -> Iterator[str]:
    elf = facts.basis.facts.elf(file.entry)
    yield from elf.needed if elf else ()
