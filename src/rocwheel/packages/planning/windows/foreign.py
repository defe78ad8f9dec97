"""Warnings about files that compilers and loaders of Windows don't take as they stand."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from rocwheel.core.messages import first_of
from rocwheel.linking.import_libraries import gnu_import_libraries
from rocwheel.packages.plan import PlanWarning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.packages.layout.facts import Facts

__all__ = ["foreign_binaries", "import_libraries"]


def foreign_binaries(facts: Facts) -> Iterator[PlanWarning]:
    """Yield a warning for DLLs and programs that nothing loads: in a tree for Linux, or of other machines."""
    if facts.foreign:
        found = f"ship as data: {facts.platform.label} on these packages' machine loads none of them"
        remedy = "Nothing needs to be done if something else reads them, as pip does with its launchers."
        yield PlanWarning("foreign-binary", first_of(facts.foreign, 1), found, remedy, facts.foreign)


def import_libraries(paths: Iterable[str]) -> Iterator[PlanWarning]:
    """Yield a warning for each import library under the name that only GNU linkers look for."""
    for library in gnu_import_libraries(paths):
        name = posixpath.basename(library.expected)
        where = f"stands beside {library.beside}" if library.beside else f"stands in the place of {name}"
        remedy = f"Have the build make {name}, which MSVC, clang-cl and CMake look for."
        if library.beside:
            remedy = "Nothing needs to be done if both are of the same DLL."
        found = f"{where}, and has the name that GNU linkers alone look for"
        yield PlanWarning("import-library", library.path, found, remedy, (library.path,))
