"""Which toolkit libraries and folders belong to: CUDA, ROCm, or any; and which libraries come with a driver."""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase

import msgspec

from rocwheel.core.decoding import read_table

__all__ = [
    "driver_of_library",
    "is_beside_sdk",
    "is_cuda_library",
    "is_rocm_folder",
    "is_shared_by_toolkits",
    "is_toolkit_folder",
    "is_versioned_by_rocm",
]


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
