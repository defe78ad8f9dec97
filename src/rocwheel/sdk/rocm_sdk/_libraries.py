"""Finds public libraries by their short names."""

from __future__ import annotations

from . import _build_info
from ._installing import installation_hint
from ._overlays import chosen_library
from ._packages import find_root
from ._platform import this_platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["locate_common_libraries", "locate_libraries"]


def locate_libraries(shortnames: Iterable[str]) -> list[tuple[str, Path]]:
    """Return the short name and the path of each library for this machine's GPU, as `locate_common_libraries` does."""
    return [(name, chosen_library(name, path)) for name, path in locate_common_libraries(shortnames)]


def locate_common_libraries(shortnames: Iterable[str]) -> list[tuple[str, Path]]:
    """Return the short name and the absolute path of each library, leaving out optional ones that are absent.

    These are the libraries for all GPUs, also where there are others for the machine's.
    Raises `ModuleNotFoundError` for unknown names and for packages that aren't installed (all of them, with the
    command that installs them), `FileNotFoundError` for a library that its package lacks.
    """
    entries = [(name, _describe(name)) for name in shortnames]
    roots = {entry["package"]: find_root(entry["package"]) for _, entry in entries}
    missing = [package for package, root in roots.items() if root is None]
    if missing:
        wanted = ", ".join(name for name, entry in entries if entry["package"] in missing)
        msg = (
            f"ROCm libraries not installed: {wanted} (in the package {', '.join(missing)}). "
            f"Install with: {installation_hint(*missing)}"
        )
        raise ModuleNotFoundError(msg)
    found = [(name, entry, _find_file(roots[entry["package"]], entry)) for name, entry in entries]
    for name, entry, path in found:
        if path is None and not entry["optional"]:
            folder = f"{roots[entry['package']]}/{entry['directory']}"
            msg = f"ROCm library {name!r}: nothing matches {entry['pattern']!r} in {folder}. Reinstall the package."
            raise FileNotFoundError(msg)
    return [(name, path) for name, _, path in found if path]


def _describe(name: str) -> _build_info.LibraryInfo:
    try:
        return _build_info.LIBRARIES[name]
    except KeyError:
        msg = f"Unknown ROCm library {name!r}. Known: {', '.join(_build_info.LIBRARIES)}"
        raise ModuleNotFoundError(msg) from None


def _find_file(root: Path | None, entry: _build_info.LibraryInfo) -> Path | None:
    if root is None:
        return None
    folder = root / entry["directory"]
    matches = this_platform().extended(folder).glob(entry["pattern"])
    return min((folder / path.name for path in matches if path.is_file()), default=None)
