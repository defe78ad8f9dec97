"""Loads DLLs of the packages with those that they need, each by its absolute path.

Windows takes a DLL that a process has for every later one of that file name. So the order decides: what is loaded first
by its path is not looked for in System32, where the graphics driver may have another of the name.
"""

from __future__ import annotations

import warnings
from pathlib import Path

from .. import _ALL_CDLLS, _build_info
from .._libraries import locate_common_libraries
from .._packages import find_root
from .missing import explain_failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterable

    from .._platform.windows import Windows

__all__ = ["DllError", "add_folders", "load_dll", "load_order", "preload_dlls", "search_folders"]

_FOLDERS: dict[str, object] = {}
"""Handles of the folders that DLLs are looked for in, by their paths."""


class DllError(OSError):
    """A DLL can't be loaded; the text says which, what is missing, and what to do."""


def preload_dlls(shortnames: Iterable[str], platform: Windows) -> None:
    """Load public libraries and before them those that they need; each is loaded once.

    Raises what `locate_common_libraries` raises, and `DllError`.
    """
    add_folders(platform)
    for name, path in locate_common_libraries(load_order(shortnames)):
        if name not in _ALL_CDLLS:
            _ALL_CDLLS[name] = load_dll(path, platform)


def load_order(shortnames: Iterable[str]) -> list[str]:
    """Return the short names of some libraries and of all that they need, each after what it needs itself."""
    rows = _build_info.LIBRARIES
    order = (needed for name in shortnames for needed in (*(rows[name].get("needs", []) if name in rows else []), name))
    return list(dict.fromkeys(order))


def add_folders(platform: Windows) -> None:
    """Have what is loaded from now on find the DLLs of the packages that are installed; each folder is added once."""
    for path in search_folders():
        if path not in _FOLDERS:
            _FOLDERS[path] = platform.calls.add_dll_directory(path)


def search_folders() -> list[str]:
    """Return the folders of DLLs of the packages that are installed; those of device packages are in the libraries'."""
    places = dict.fromkeys((info["package"], info["directory"]) for info in _build_info.LIBRARIES.values())
    roots = {package: find_root(package) for package, _ in places}
    paths = [root / folder for package, folder in places if (root := roots[package])]
    return [str(path) for path in paths if path.is_dir()]


def load_dll(path: Path, platform: Windows) -> ctypes.CDLL:
    """Load a DLL by its path. Raises `DllError`."""
    _warn_of_another(path, platform.calls.loaded_path(path.name))
    try:
        return platform.calls.load(str(path))
    except OSError as e:
        raise DllError(explain_failure(path, e, list(_FOLDERS), platform.calls)) from e


def _warn_of_another(path: Path, there: str) -> None:
    if there and not _is_same(path, Path(there)):
        msg = (
            f"{path.name} was loaded from {there} before rocm_sdk could load {path}, "
            "and DLLs that need it get the former. Call rocm_sdk.initialize_process or preload_libraries first."
        )
        warnings.warn(msg, RuntimeWarning, stacklevel=5)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
