"""Warnings about files that compilers and loaders of Windows don't take as they stand."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from rocwheel.foundation.counting import first_of
from rocwheel.packages.plan import PlanWarning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.packages.layout.facts import Facts

__all__ = ["foreign_binaries", "import_libraries"]

_GNU = ".dll.a"
_MSVC = ".lib"


def foreign_binaries(facts: Facts) -> Iterator[PlanWarning]:
    """Yield a warning for DLLs and programs that nothing loads: in a tree for Linux, or of other machines."""
    if facts.foreign:
        found = f"ship as data: {facts.platform.label} on these packages' machine loads none of them"
        remedy = "Nothing needs to be done if something else reads them, as pip does with its launchers."
        yield PlanWarning("foreign-binary", first_of(facts.foreign, 1), found, remedy, facts.foreign)


def import_libraries(paths: Iterable[str]) -> Iterator[PlanWarning]:
    """Yield a warning for each import library under the name that only GNU linkers look for."""
    known = set(paths)
    for path in sorted(path for path in known if path.endswith(_GNU)):
        folder, name = posixpath.split(path.removesuffix(_GNU))
        others = [posixpath.join(folder, f"{stem}{_MSVC}") for stem in dict.fromkeys((name, name.removeprefix("lib")))]
        beside = next((other for other in others if other in known), "")
        where = f"stands beside {beside}" if beside else f"stands in the place of {posixpath.basename(others[0])}"
        remedy = f"Have the build make {posixpath.basename(others[0])}, which MSVC, clang-cl and CMake look for."
        if beside:
            remedy = "Nothing needs to be done if both are of the same DLL."
        found = f"{where}, and has the name that GNU linkers alone look for"
        yield PlanWarning("import-library", path, found, remedy, (path,))
