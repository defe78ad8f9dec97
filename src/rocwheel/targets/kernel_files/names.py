"""Which targets a file is for, by its path: ``Kernels.so-000-gfx90a-xnack+.hsaco``, ``library/gfx942/x.co``."""

from __future__ import annotations

import posixpath
import re
from functools import cache

from rocwheel.binary.code_objects import FEATURES, TargetId, parse_target_id
from rocwheel.targets.catalog.catalog import load_catalog
from rocwheel.targets.errors import UnknownTargetError
from rocwheel.targets.kernel_files.patterns import processors_pattern
from rocwheel.targets.kernel_files.table import load_table

__all__ = ["is_kernel_file", "kernel_targets", "kpack_target", "library_of", "targets_in_path", "without_targets"]


@cache
def _pattern() -> re.Pattern[str]:
    """Return the pattern of a processor and its features.

    MIOpen appends the number of compute units, in hexadecimal: ``gfx90a6e`` is gfx90a with 110 of them.
    """
    features = f"(?:[-:](?:{'|'.join(FEATURES)})[+-])*"
    processor = f"((?:{processors_pattern()})(?:[-_]strict)?)"
    end = "(?=[0-9a-f]{2,3}(?![0-9a-z])|(?![0-9a-z]))"
    return re.compile(f"(?<![0-9a-z]){processor}({features}){end}")


def targets_in_path(path: str) -> tuple[TargetId, ...]:
    """Return the targets that a relative path names, each once; none for files that are for any."""
    matches = _pattern().finditer(path.replace("\\", "/"))
    found = (match[1].replace("_", "-") + re.sub(r"-(?=[sx])", ":", match[2]) for match in matches)
    return tuple(dict.fromkeys(parse_target_id(text, source=path) for text in found))


def without_targets(path: str) -> str:
    """Return a relative path with each target as ``*``, which files that do the same for several targets share."""
    return _pattern().sub("*", path)


def is_kernel_file(path: str) -> bool:
    """Return whether a file of this name belongs to a kernel library, so that a target in its name says what it is for.

    Headers, CMake files and licenses may name targets, too, but are for all of them.
    """
    return path.endswith(load_table().suffixes)


def kernel_targets(path: str) -> frozenset[str]:
    """Return the targets that the name of a kernel file says it is for; none for other files."""
    return frozenset(map(str, targets_in_path(path))) if is_kernel_file(path) else frozenset()


def kpack_target(name: str, *, source: str) -> TargetId:
    """Return the one target that a kpack file holds the code of, which its name ends with.

    Raises `InputError`, led by ``source``, when that is not the target of a GPU. The catalogue need not know it.
    """
    target = parse_target_id(name.removesuffix(".kpack").rpartition("_")[2], source=source)
    if not target.processor.startswith("gfx"):
        raise UnknownTargetError(target.processor, load_catalog().processors, source=source)
    return target


def library_of(path: str) -> str:
    """Return what a file with code belongs to: of kernel files their folder, of ``.kpack`` files a pattern, or itself.

    Targets are left out of it, so that files for several of them are of one library.
    """
    if path.endswith(".kpack"):
        return without_targets(path)
    return posixpath.dirname(without_targets(path)) + "/" if is_kernel_file(path) else path
