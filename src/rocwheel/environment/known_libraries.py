"""Lists the libraries of systems and toolkits, and the packages that provide them."""

from __future__ import annotations

import enum
import functools
import posixpath
import re
from fnmatch import fnmatchcase, translate
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.core.decoding import read_table
from rocwheel.core.names import fold_case
from rocwheel.environment.loader import Library
from rocwheel.environment.sdk_layout import SdkFolder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator


class _Toolkits(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    cuda: tuple[str, ...]
    shared: tuple[str, ...]
    guests: tuple[str, ...]
    beside_sdk: tuple[str, ...]
    folders: tuple[str, ...]
    rocm_folders: tuple[str, ...]
    drivers: dict[str, tuple[str, ...]]


@functools.cache
def _toolkits() -> _Toolkits:
    return read_table(__package__, "toolkits.toml", _Toolkits)


def is_cuda_library(soname: str) -> bool:
    """Return whether a SONAME belongs to a CUDA library."""
    return _fits(soname, _toolkits().cuda)


def is_beside_sdk(soname: str) -> bool:
    """Return whether a ROCm library is part of ROCm installations but not of any SDK package."""
    return _fits(soname, _toolkits().beside_sdk)


def driver_of_library(soname: str) -> str:
    """Return a phrase for the driver that a library is part of, or an empty string for other libraries."""
    return next((words for words, patterns in _toolkits().drivers.items() if _fits(soname, patterns)), "")


def is_shared_by_toolkits(soname: str) -> bool:
    """Return whether an SDK library is also part of systems and other toolkits."""
    return _fits(soname, _toolkits().shared)


def is_versioned_by_rocm(soname: str) -> bool:
    """Return whether the version in an SDK library's SONAME identifies its ROCm release."""
    return not is_shared_by_toolkits(soname) and not _fits(soname, _toolkits().guests)


def is_toolkit_folder(path: str) -> bool:
    """Return whether an absolute path is in a ROCm or CUDA installation, judging by its folder names."""
    return path.startswith("/") and any(_fits(part, _toolkits().folders) for part in path.split("/"))


def is_rocm_folder(path: str) -> bool:
    """Return whether a path is in a ROCm installation or a ROCm Python package, judging by its folder names."""
    return any(_fits(part, _toolkits().rocm_folders) for part in path.split("/"))


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


class _Package(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    patterns: tuple[str, ...]
    folder: str = ""
    libraries: tuple[str, ...] = ()


@functools.cache
def _packages() -> dict[str, _Package]:
    return read_table(__package__, "package_libraries.toml", dict[str, _Package])


def package_of_library(name: str, packages: Collection[str]) -> str:
    """Return which of the given packages provides a library, or an empty string if no package does.

    Names are normalized.
    """
    return next((one for one, known in _packages().items() if one in packages and _fits(name, known.patterns)), "")


@functools.cache
def known_package_folders() -> tuple[SdkFolder, ...]:
    """Return the folders of public packages outside the SDK that contain libraries for other packages."""
    return tuple(SdkFolder(name, one.folder, one.libraries) for name, one in _packages().items() if one.folder)


class AllowedLibraries:
    """The libraries that every supported system has, as SONAME patterns. The files themselves are unknown."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(patterns)
        self._are_allowed: dict[str, bool] = {}

    def find(self, name: str, machine: int) -> Library | None:  # noqa: ARG002 (required by the protocol)
        """Return a placeholder for the allowed library with this name, or `None` if the name isn't allowed."""
        if name not in self._are_allowed:
            self._are_allowed[name] = _fits(name, self._patterns)
        return Library(name, f"system:{name}", None) if self._are_allowed[name] else None


class _Interpreter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    symbols: tuple[str, ...]
    math: tuple[str, ...]


class _Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    libraries: dict[str, tuple[str, ...]]
    symbols: dict[str, tuple[str, ...]]
    interpreter: _Interpreter
    plugins: dict[str, tuple[str, ...]]


class _Symbols(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    brings: dict[str, tuple[str, ...]]
    names: dict[str, str]


@functools.cache
def _policy() -> _Policy:
    return read_table(__package__, "system_libraries.toml", _Policy)


def allowed_libraries(more: Iterable[str] = ()) -> AllowedLibraries:
    """Return the libraries that the policy next to this module allows or that match the ``more`` patterns."""
    return AllowedLibraries((*_patterns(), *more))


def is_glibc_library(name: str) -> bool:
    """Return whether a library belongs to glibc, which every process loads."""
    return any(fnmatchcase(name, pattern) for pattern in _policy().libraries["glibc"])


def _patterns() -> tuple[str, ...]:
    return tuple(pattern for patterns in _policy().libraries.values() for pattern in patterns)


def interpreter_symbols() -> tuple[str, ...]:
    """Return patterns for the symbols that the Python interpreter defines."""
    found = _policy().interpreter
    return (*found.symbols, *(name + kind for name in found.math for kind in ("", "f", "l")))


def plugin_symbols() -> dict[str, tuple[str, ...]]:
    """Return symbol patterns for programs with plugins, keyed by the entry function of their plugins."""
    return _policy().plugins


@functools.cache
def stable_abi() -> dict[str, tuple[int, int]]:
    """Return the symbols of Python's stable ABI, with the first release that has each symbol."""
    table = read_table(__package__, "stable_abi.toml", dict[str, str])
    return {name: _version(release) for release, names in table.items() for name in names.split()}


def _version(release: str) -> tuple[int, int]:
    major, minor = map(int, release.split("."))
    return major, minor


@functools.lru_cache(maxsize=1 << 14)
def unversioned_symbols(soname: str) -> tuple[str, ...] | None:
    """Return patterns for the unversioned symbols of a library in the policy, or `None` for any other library."""
    for pattern, symbols in _policy().symbols.items():
        if fnmatchcase(soname, pattern):
            return symbols
    return () if _is_allowed(soname) else None


@functools.lru_cache(maxsize=1 << 14)
def _is_allowed(soname: str) -> bool:
    return _fits(soname, _patterns())


def defines_by_default(soname: str, symbol: str) -> bool:
    """Return whether a system library, or a library that it loads, defines a symbol with a default version.

    A reference without a version binds to such a symbol. The result is false for libraries that aren't part of the
    system.
    """
    if not _is_allowed(soname):
        return False
    return any(_defines(name, symbol) for name in (soname, *_symbols().brings.get(soname, ()), *_LOADED_BY_ALL))


_LOADED_BY_ALL = ("libc.so.6", "ld-linux-x86-64.so.2")


def _defines(soname: str, symbol: str) -> bool:
    names, patterns = _default_symbols(soname)
    return symbol in names or patterns.match(symbol) is not None


@functools.cache
def _symbols() -> _Symbols:
    return read_table(__package__, "system_symbols.toml", _Symbols)


@functools.cache
def _default_symbols(soname: str) -> tuple[frozenset[str], re.Pattern[str]]:
    """Return the symbols that a library defines with a default version: names, and a pattern for other names."""
    words = _symbols().names.get(soname, "").split()
    patterns = [word for word in words if any(mark in word for mark in "*?[")]
    return frozenset(words) - set(patterns), re.compile("|".join(map(translate, patterns)) or r"(?!)")


class DllKind(str, enum.Enum):
    """The source of a DLL that packages don't need to provide."""

    SYSTEM = "system"
    """Part of Windows 10 and later."""
    VISUAL_CPP = "visual-cpp"
    """Part of the Visual C++ redistributable."""
    DEBUG = "debug"
    """Part of Visual Studio only."""
    PYTHON = "python"
    """Part of the interpreter."""
    DRIVER = "driver"
    """Part of AMD's driver. It is in System32, and its version varies."""


class SdkDlls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A folder in a ROCm distribution, relative to site-packages, with patterns for its DLLs."""

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
    """Return the source of a DLL with this file name in any case, or `None` if a package must provide the DLL."""
    table = _table()
    kinds = {
        DllKind.SYSTEM: tuple(pattern for group in table.system.values() for pattern in group),
        # Patterns for debug DLLs, which end with "d", come first because other patterns also match them: msvcp140*.dll.
        DllKind.DEBUG: table.visual_cpp.debug,
        DllKind.VISUAL_CPP: table.visual_cpp.redistributable,
        DllKind.PYTHON: table.python.names,
        DllKind.DRIVER: table.driver.names,
    }
    return next((kind for kind, patterns in kinds.items() if _fits_dll(name, patterns)), None)


def is_driver_dll(name: str) -> bool:
    """Return whether AMD's driver may have a DLL with this name in System32."""
    return kind_of_dll(name) is DllKind.DRIVER


def comes_with_any_driver(name: str) -> bool:
    """Return whether the drivers of all vendors include a DLL, in some version."""
    return _fits_dll(name, _table().driver.of_any_vendor)


def comes_with_python(name: str) -> bool:
    """Return whether builds from python.org include this Visual C++ runtime library next to ``python.exe``."""
    return _fits_dll(name, _table().visual_cpp.with_python)


def sdk_dll_folders() -> tuple[SdkDlls, ...]:
    """Return the folders of the DLLs in ROCm's packages for Windows."""
    return _table().packages


def find_sdk_dll(name: str) -> SdkDlls | None:
    """Return the ROCm package and folder that contain a DLL, or `None` if there is no such package."""
    return next((package for package in sdk_dll_folders() if _fits_dll(name, package.libraries)), None)


def _fits_dll(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name.lower(), pattern) for pattern in patterns)


_GNU_PREFIX: Final = "lib"
_GNU_SUFFIX: Final = ".dll.a"
_SUFFIX: Final = ".lib"
_EXTENSION_MODULE: Final = ".pyd"


class GnuImportLibrary(msgspec.Struct, frozen=True):
    """An import library whose name only GNU linkers recognize."""

    path: str
    expected: str
    """The path that MSVC, clang-cl, and CMake search for: ``lib/x.lib`` for ``lib/libx.dll.a``."""
    beside: str
    """The path of a neighboring file that they find, ``lib/x.lib`` or ``lib/libx.lib``.

    Empty if there is no such file.
    """


def gnu_import_libraries(paths: Iterable[str]) -> Iterator[GnuImportLibrary]:
    """Yield each import library in ``paths`` whose name ends with ``.dll.a`` in any case, sorted.

    Import libraries of Python extension modules are omitted, because other files don't link with them.
    """
    known = {fold_case(path): path for path in paths}
    for path in sorted(path for path in known.values() if path.lower().endswith(_GNU_SUFFIX)):
        stem = path[: -len(_GNU_SUFFIX)]
        if fold_case(stem + _EXTENSION_MODULE) in known:
            continue
        folder, name = posixpath.split(stem)
        expected = posixpath.join(folder, f"{_without_prefix(name)}{_SUFFIX}")
        beside = (known.get(fold_case(other)) for other in (expected, stem + _SUFFIX))
        yield GnuImportLibrary(path, expected, next((other for other in beside if other), ""))


def _without_prefix(name: str) -> str:
    return name[len(_GNU_PREFIX) :] if name.lower().startswith(_GNU_PREFIX) else name
