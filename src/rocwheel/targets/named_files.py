"""Which targets a file is for, by its path: ``Kernels.so-000-gfx90a-xnack+.hsaco``, ``library/gfx942/x.co``."""

from __future__ import annotations

import re
from functools import cache

from rocwheel.binary.code_objects.machine import known_processors
from rocwheel.binary.code_objects.target_id import FEATURES, TargetId, parse_target_id

__all__ = ["is_kernel_file", "targets_in_path", "without_targets"]

_KERNEL_FILES = (".aks2", ".co", ".dat", ".db", ".db.txt", ".fdb.txt", ".hsaco", ".kdb", ".kpack", ".model")
"""Tensile's kernels and their tables, MIOpen's databases and models, AOTriton's images, kpack archives."""


@cache
def _pattern() -> re.Pattern[str]:
    """Return the pattern of a processor and its features.

    MIOpen appends the number of compute units, in hexadecimal: ``gfx90a6e`` is gfx90a with 110 of them.
    """
    processors = "|".join(map(re.escape, sorted(known_processors(), key=len, reverse=True)))
    features = f"(?:[-:](?:{'|'.join(FEATURES)})[+-])*"
    return re.compile(rf"(?<![0-9a-z])({processors})({features})(?=[0-9a-f]{{2,3}}(?![0-9a-z])|(?![0-9a-z]))")


def targets_in_path(path: str) -> tuple[TargetId, ...]:
    """Return the targets that a relative path names, each once; none for files that are for any."""
    found = (match[1] + re.sub(r"-(?=[sx])", ":", match[2]) for match in _pattern().finditer(path.replace("\\", "/")))
    return tuple(dict.fromkeys(parse_target_id(text, source=path) for text in found))


def without_targets(path: str) -> str:
    """Return a relative path with each target as ``*``, which files that do the same for several targets share."""
    return _pattern().sub("*", path)


def is_kernel_file(path: str) -> bool:
    """Return whether a file of this name belongs to a kernel library, so that a target in its name says what it is for.

    Headers, CMake files and licenses may name targets, too, but are for all of them.
    """
    return path.endswith(_KERNEL_FILES)
