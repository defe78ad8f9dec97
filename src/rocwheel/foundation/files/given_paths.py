"""Paths as a program gives them: one path or several, each as text or as a path object."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from rocwheel.foundation.errors import InputError

__all__ = ["GivenPath", "GivenPaths", "paths_given", "some_paths_given"]

GivenPath = str | os.PathLike[str]
GivenPaths = GivenPath | Iterable[GivenPath]


def paths_given(paths: GivenPaths) -> tuple[Path, ...]:
    """Return the paths; a text is one path, not an iterable of letters."""
    if isinstance(paths, str | os.PathLike):
        return (Path(paths),)
    return tuple(Path(path) for path in paths)


def some_paths_given(name: str, paths: GivenPaths) -> tuple[Path, ...]:
    """Return the paths of the parameter ``name``. Raise `InputError` when there are none."""
    found = paths_given(paths)
    if not found:
        raise InputError(name, "is empty", expected="at least one path")
    return found
