"""What a library for one GPU target alone is called: it lies beside the library for all GPUs, which it stands in for.

``lib/librocblas.so.5.gfx906`` stands in for ``lib/librocblas.so.5``, whose SONAME it has. It lies in the same folder as
libraries look for their kernels beside the file that they were loaded from, some of them by the beginning of its name.
"""

from __future__ import annotations

import re

__all__ = ["overlay_path", "split_overlay_path"]

_TARGET = re.compile(r"gfx[0-9a-f]+(-[0-9a-z]+)*")


def overlay_path(library: str, target: str) -> str:
    """Return the path of the library for ``target`` that stands in for ``library``, which is called by its SONAME."""
    return f"{library}.{target}"


def split_overlay_path(path: str) -> tuple[str, str] | None:
    """Return the library that the one at ``path`` stands in for, and its target; none for any other file."""
    library, _, target = path.rpartition(".")
    name = library.rpartition("/")[2]
    is_library = ".so." in f"{name[1:]}."
    return (library, target) if is_library and _TARGET.fullmatch(target) else None
