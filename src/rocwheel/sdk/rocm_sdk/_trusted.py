"""Finds modules on ``sys.path``, but none in the working directory, where anybody may have put them.

``python -c`` and ``python -m`` search that folder first; an empty entry of ``PYTHONPATH`` adds it.
"""

from __future__ import annotations

import os
import site
import sys
from importlib import invalidate_caches
from importlib.machinery import PathFinder
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

__all__ = ["find_trusted", "is_trusted"]

SITE = Path(__file__).parent.parent
"""Folder in which ``rocm_sdk`` is installed."""


def find_trusted(name: str) -> ModuleSpec | None:
    """Return the import spec of a module at the top, None when only the working directory has it, or nothing."""
    invalidate_caches()
    return PathFinder.find_spec(name, _trusted_entries())


def is_trusted(name: str) -> bool:
    """Return whether importing a module, at the top or below a package, runs nothing of the working directory."""
    top = name.partition(".")[0]
    return name in sys.modules or _places(PathFinder.find_spec(top)) == _places(find_trusted(top))


def _places(spec: ModuleSpec | None) -> tuple[str | None, list[str]]:
    """Return the file of a module and the folders in which what is below it is looked for."""
    return (spec.origin, list(spec.submodule_search_locations or ())) if spec else (None, [])


def _trusted_entries() -> list[str]:
    """Return the entries of ``sys.path`` without relative ones, and without the working directory.

    That counts where Python or ``rocm_sdk`` itself is installed in it: then all that is imported lies there.
    """
    try:
        here = Path.cwd().resolve()
    except OSError:  # it was removed: no modules are in it
        return [entry for entry in sys.path if Path(entry).is_absolute()]
    installed = [*map(Path, site.getsitepackages()), Path(site.getusersitepackages()), Path(os.__file__).parent, SITE]
    if any(folder.resolve() == here for folder in installed):
        return [entry for entry in sys.path if Path(entry).is_absolute()]
    return [entry for entry in sys.path if Path(entry).is_absolute() and Path(entry).resolve() != here]
