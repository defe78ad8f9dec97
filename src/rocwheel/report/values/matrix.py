"""Which library has code for which GPU."""

from __future__ import annotations

import enum

import msgspec

__all__ = ["Code", "Matrix", "MatrixRow"]


class Code(str, enum.Enum):
    """What a library has for a GPU, from the best to the worst."""

    EXACT = "exact"
    PARTLY = "partly"
    """For some settings of its features (XNACK, SRAMECC) alone."""
    GENERIC = "generic"
    SPIRV = "spirv"
    MISSING = "missing"


class MatrixRow(msgspec.Struct, frozen=True):
    """A library, or the files of a kernel library, which several packages may hold."""

    library: str
    """The path; of kernel files that of their folder, and with a star for a target in it."""
    packages: tuple[str, ...]
    targets: tuple[str, ...]
    """What it has code for, as spelled there."""
    codes: tuple[Code, ...]
    """For each GPU of the matrix."""


class Matrix(msgspec.Struct, frozen=True):
    """All libraries with device code, and all GPUs that any of them has code for."""

    gpus: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
