"""What is known of systems and toolkits: the names of their libraries, and which packages have them."""

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
    """Return whether a SONAME is that of a library of CUDA."""
    return _fits(soname, _toolkits().cuda)


def is_beside_sdk(soname: str) -> bool:
    """Return whether a library is one of ROCm that only a machine's ROCm has, and no package of the SDK."""
    return _fits(soname, _toolkits().beside_sdk)


def driver_of_library(soname: str) -> str:
    """Return who brings a library that comes with a machine's driver, in words; empty for any other library."""
    return next((words for words, patterns in _toolkits().drivers.items() if _fits(soname, patterns)), "")


def is_shared_by_toolkits(soname: str) -> bool:
    """Return whether a library of the SDK is one that systems and other toolkits have as well."""
    return _fits(soname, _toolkits().shared)


def is_versioned_by_rocm(soname: str) -> bool:
    """Return whether the version in the SONAME of a library of the SDK tells which release of ROCm it is from."""
    return not is_shared_by_toolkits(soname) and not _fits(soname, _toolkits().guests)


def is_toolkit_folder(path: str) -> bool:
    """Return whether an absolute path leads into a machine's ROCm or CUDA, judging by the names of its folders."""
    return path.startswith("/") and any(_fits(part, _toolkits().folders) for part in path.split("/"))


def is_rocm_folder(path: str) -> bool:
    """Return whether a path leads into some ROCm, a machine's or one of its Python packages, by its folders' names."""
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
    """Return that one of some packages, given by their normalized names, that brings a library; empty if none does."""
    return next((one for one, known in _packages().items() if one in packages and _fits(name, known.patterns)), "")


@functools.cache
def known_package_folders() -> tuple[SdkFolder, ...]:
    """Return the folders of public packages outside the SDK whose libraries other packages link against."""
    return tuple(SdkFolder(name, one.folder, one.libraries) for name, one in _packages().items() if one.folder)


class AllowedLibraries:
    """The libraries that every supported system has, by patterns of SONAMEs. Nothing is known of the files."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(patterns)

    def find(self, name: str, machine: int) -> Library | None:  # noqa: ARG002 (the protocol's)
        """Return a library that stands for any allowed library of that name; None if none is allowed."""
        if any(fnmatchcase(name, pattern) for pattern in self._patterns):
            return Library(name, f"system:{name}", None)
        return None


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
    """Return what the policy next to this module allows, and the SONAMEs that match ``more`` patterns."""
    return AllowedLibraries((*_patterns(), *more))


def is_glibc_library(name: str) -> bool:
    """Return whether a name is that of a library of glibc, which each process has."""
    return any(fnmatchcase(name, pattern) for pattern in _policy().libraries["glibc"])


def _patterns() -> tuple[str, ...]:
    return tuple(pattern for patterns in _policy().libraries.values() for pattern in patterns)


def interpreter_symbols() -> tuple[str, ...]:
    """Return patterns of the symbols that the Python interpreter defines."""
    found = _policy().interpreter
    return (*found.symbols, *(name + kind for name in found.math for kind in ("", "f", "l")))


def plugin_symbols() -> dict[str, tuple[str, ...]]:
    """Return, by the function through which a program enters its plug-ins, patterns of the symbols that it has."""
    return _policy().plugins


@functools.cache
def stable_abi() -> dict[str, tuple[int, int]]:
    """Return the symbols of Python's stable ABI, with the release that first has each."""
    table = read_table(__package__, "stable_abi.toml", dict[str, str])
    return {name: _version(release) for release, names in table.items() for name in names.split()}


def _version(release: str) -> tuple[int, int]:
    major, minor = map(int, release.split("."))
    return major, minor


def unversioned_symbols(soname: str) -> tuple[str, ...] | None:
    """Return patterns of the symbols without versions that a library of the policy defines; None for any other."""
    for pattern, symbols in _policy().symbols.items():
        if fnmatchcase(soname, pattern):
            return symbols
    return () if any(fnmatchcase(soname, pattern) for pattern in _patterns()) else None


def defines_by_default(soname: str, symbol: str) -> bool:
    """Return whether a library of the system, or what that loads, gives a symbol a default version.

    A reference without a version binds to it. No is the answer for libraries that are not of the system.
    """
    if not any(fnmatchcase(soname, pattern) for pattern in _patterns()):
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
    """Return what a library gives a default version: names, and an expression for the others."""
    words = _symbols().names.get(soname, "").split()
    patterns = [word for word in words if any(mark in word for mark in "*?[")]
    return frozenset(words) - set(patterns), re.compile("|".join(map(translate, patterns)) or r"(?!)")


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
    return next((kind for kind, patterns in kinds.items() if _fits_dll(name, patterns)), None)


def is_driver_dll(name: str) -> bool:
    """Return whether AMD's driver may have a DLL of a name in System32."""
    return kind_of_dll(name) is DllKind.DRIVER


def comes_with_any_driver(name: str) -> bool:
    """Return whether the drivers of all vendors have a DLL, whichever version does."""
    return _fits_dll(name, _table().driver.of_any_vendor)


def comes_with_python(name: str) -> bool:
    """Return whether builds of python.org have a run-time library of Visual C++ beside ``python.exe``."""
    return _fits_dll(name, _table().visual_cpp.with_python)


def sdk_dll_folders() -> tuple[SdkDlls, ...]:
    """Return where ROCm's packages for Windows have their DLLs."""
    return _table().packages


def find_sdk_dll(name: str) -> SdkDlls | None:
    """Return the package of ROCm's, and the folder in it, that has a DLL; None if none has."""
    return next((package for package in sdk_dll_folders() if _fits_dll(name, package.libraries)), None)


def _fits_dll(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name.lower(), pattern) for pattern in patterns)


_GNU_PREFIX: Final = "lib"
_GNU_SUFFIX: Final = ".dll.a"
_SUFFIX: Final = ".lib"
_EXTENSION_MODULE: Final = ".pyd"


class GnuImportLibrary(msgspec.Struct, frozen=True):
    """An import library under the name that GNU linkers alone look for."""

    path: str
    expected: str
    """The path that MSVC, clang-cl and CMake look for: of ``lib/libx.dll.a``, ``lib/x.lib``."""
    beside: str
    """The path of one beside it that they do find, ``lib/x.lib`` or ``lib/libx.lib``; empty if there is none."""


def gnu_import_libraries(paths: Iterable[str]) -> Iterator[GnuImportLibrary]:
    """Yield each import library among ``paths`` whose name ends with ``.dll.a``, sorted; names are in any case.

    Those of Python's extension modules are left out: nobody links with them.
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
