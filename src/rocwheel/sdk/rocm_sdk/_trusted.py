"""Finds modules on ``sys.path``, but none in the working directory, where anybody may have put them.

``python -c`` and ``python -m`` search that folder first; an empty entry of ``PYTHONPATH`` adds it, and a relative one a
folder below or beside it.
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

__all__ = ["find_trusted", "is_trusted", "trusted_entries"]

SITE = Path(__file__).parent.parent
"""Folder in which ``rocm_sdk`` is installed."""


def find_trusted(name: str) -> ModuleSpec | None:
    """Return the import spec of a module at the top, None when only the working directory has it, or nothing."""
    invalidate_caches()
    return PathFinder.find_spec(name, trusted_entries())


def is_trusted(name: str) -> bool:
    """Return whether importing a module, at the top or below a package, runs nothing of the working directory."""
    top = name.partition(".")[0]
    return name in sys.modules or _places(PathFinder.find_spec(top)) == _places(find_trusted(top))


def _places(spec: ModuleSpec | None) -> tuple[str | None, list[str]]:
    """Return the file of a module and the folders in which what is below it is looked for."""
    return (spec.origin, list(spec.submodule_search_locations or ())) if spec else (None, [])


def trusted_entries() -> list[str]:
    """Return the entries of ``sys.path`` without the working directory and those that are relative to it.

    They count where Python or ``rocm_sdk`` itself is installed in them: then all that is imported lies there.
    """
    refused = {*map(_real, _relative_folders())} - {*map(_real, _installed_folders())}
    return [entry for entry in sys.path if os.path.isabs(entry) and _real(entry) not in refused]  # noqa: PTH117


def _relative_folders() -> list[str]:
    """Return the working directory, and the folders that relative entries of ``PYTHONPATH`` lead to from there.

    Python has made absolute paths of these. There are none when the working directory was removed.
    """
    try:
        here = os.getcwd()  # noqa: PTH109 (as the entries, no path object)
    except OSError:
        return []
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [here, *(os.path.join(here, entry) for entry in entries if not os.path.isabs(entry))]  # noqa: PTH117, PTH118


def _installed_folders() -> list[str]:
    return [*site.getsitepackages(), site.getusersitepackages(), os.path.dirname(os.__file__), str(SITE)]  # noqa: PTH120


def _real(path: str) -> str:
    return os.path.realpath(path)
