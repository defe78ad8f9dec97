"""Finds and loads the ROCm libraries that are installed as Python packages."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from typing import Any

    from ._process import find_libraries, initialize_process, preload_libraries

__all__ = ["__version__", "find_libraries", "initialize_process", "preload_libraries"]

__version__: str
"""The version of all packages in this SDK."""

_ALL_CDLLS: dict[str, ctypes.CDLL] = {}
"""The handles of the preloaded libraries, keyed by short name. Frameworks read this variable."""


def __getattr__(name: str) -> Any:
    """Import the public functions on first use, so that importing the package itself is fast."""
    if name == "__version__":
        return import_module("._build_info", __name__).VERSION
    if name == "_dist_info":  # scripts read this attribute of the package without importing the module
        return import_module("._dist_info", __name__)
    if name in __all__:
        return getattr(import_module("._process", __name__), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
