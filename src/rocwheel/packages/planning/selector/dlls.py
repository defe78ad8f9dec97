"""The public libraries of packages for Windows: every DLL in the folders that libraries are loaded from."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

from rocwheel.packages.planning.windows.dll_order import ShippedDll, dll_libraries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.packages.planning.selector.facts import SelectorFacts

__all__ = ["windows_libraries"]


def windows_libraries(facts: SelectorFacts) -> dict[str, dict[str, Any]]:
    """Return the rows of ``LIBRARIES`` in ``_build_info.py`` (see ``sdk/README.md``)."""
    return dll_libraries(list(dict.fromkeys(_shipped(facts))), facts.recipe.libraries)


def _shipped(facts: SelectorFacts) -> Iterator[ShippedDll]:
    folders = {library.directory for library in facts.recipe.libraries.values()}
    for package in facts.packages:
        is_optional = facts.recipe.packages[package.key].kind == "device"
        for path, file in sorted(package.placement.files.items()):
            image = facts.basis.facts.pe(file.entry)
            if image and image.is_dll and path.lower().endswith(".dll") and posixpath.dirname(path) in folders:
                yield ShippedDll(package.key, path, tuple(dll.name for dll in image.imports), is_optional)
