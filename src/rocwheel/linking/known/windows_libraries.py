"""The DLLs that Windows, Visual C++, Python and AMD's driver bring, and those of ROCm's packages for Windows."""

from __future__ import annotations

import enum
import functools
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.decoding import read_table

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "DllKind",
    "SdkDlls",
    "comes_with_any_driver",
    "comes_with_python",
    "find_sdk_dll",
    "is_driver_dll",
    "kind_of_dll",
    "sdk_dll_folders",
]


class DllKind(str, enum.Enum):
    """Who brings a DLL that no package has to."""

    SYSTEM = "system"
    """Every Windows 10 and later has it."""
    VISUAL_CPP = "visual-cpp"
    """The Visual C++ redistributable has it."""
    DEBUG = "debug"
    """Only Visual Studio has it."""
    PYTHON = "python"
    """The interpreter itself."""
    DRIVER = "driver"
    """AMD's driver has it in System32, in whichever version."""


class SdkDlls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A folder of a distribution of ROCm's, relative to site-packages, with patterns of the DLLs in it."""

    distribution: str
    folder: str
    libraries: tuple[str, ...]


class _VisualCpp(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    redistributable: tuple[str, ...]
    with_python: tuple[str, ...]
    debug: tuple[str, ...]


class _Names(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    names: tuple[str, ...]


class _Driver(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    names: tuple[str, ...]
    of_any_vendor: tuple[str, ...]


class _Table(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    system: dict[str, tuple[str, ...]]
    visual_cpp: _VisualCpp
    python: _Names
    driver: _Driver
    packages: tuple[SdkDlls, ...]


@functools.cache
def _table() -> _Table:
    return read_table(__package__, "windows_libraries.toml", _Table)


@functools.cache
def kind_of_dll(name: str) -> DllKind | None:
    """Return who brings a DLL, by its file name in any case; None for one that a package has to bring."""
    table = _table()
    kinds = {
        DllKind.SYSTEM: tuple(pattern for group in table.system.values() for pattern in group),
        # Patterns of those with a "d" at the end also fit the others' patterns: msvcp140*.dll.
        DllKind.DEBUG: table.visual_cpp.debug,
        DllKind.VISUAL_CPP: table.visual_cpp.redistributable,
        DllKind.PYTHON: table.python.names,
        DllKind.DRIVER: table.driver.names,
    }
    return next((kind for kind, patterns in kinds.items() if _fits(name, patterns)), None)


def is_driver_dll(name: str) -> bool:
    """Return whether AMD's driver may have a DLL of a name in System32."""
    return kind_of_dll(name) is DllKind.DRIVER


def comes_with_any_driver(name: str) -> bool:
    """Return whether the drivers of all vendors have a DLL, whichever version does."""
    return _fits(name, _table().driver.of_any_vendor)


def comes_with_python(name: str) -> bool:
    """Return whether builds of python.org have a run-time library of Visual C++ beside ``python.exe``."""
    return _fits(name, _table().visual_cpp.with_python)


def sdk_dll_folders() -> tuple[SdkDlls, ...]:
    """Return where ROCm's packages for Windows have their DLLs."""
    return _table().packages


def find_sdk_dll(name: str) -> SdkDlls | None:
    """Return the package of ROCm's, and the folder in it, that has a DLL; None if none has."""
    return next((package for package in sdk_dll_folders() if _fits(name, package.libraries)), None)


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name.lower(), pattern) for pattern in patterns)
