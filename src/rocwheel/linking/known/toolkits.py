"""Which toolkit libraries belong to: CUDA, ROCm, or any."""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase

import msgspec

from rocwheel.foundation.tables import read_table

__all__ = ["is_cuda_library", "is_shared_by_toolkits"]


class _Toolkits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cuda: tuple[str, ...]
    shared: tuple[str, ...]


@functools.cache
def _toolkits() -> _Toolkits:
    return read_table(__package__, "toolkits.toml", _Toolkits)


def is_cuda_library(soname: str) -> bool:
    """Return whether a SONAME is that of a library of CUDA."""
    return any(fnmatchcase(soname, pattern) for pattern in _toolkits().cuda)


def is_shared_by_toolkits(soname: str) -> bool:
    """Return whether a library of the SDK is one that systems and other toolkits have as well."""
    return any(fnmatchcase(soname, pattern) for pattern in _toolkits().shared)
