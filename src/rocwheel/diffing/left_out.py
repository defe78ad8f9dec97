"""Leaving out what has no readable counterpart: a package that can't be read on one side did not go on it."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.errors import InputError, each_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.diffing.values import Side
    from rocwheel.foundation.errors import RocwheelError

__all__ = ["without_unread"]

_UNUSABLE = "Inputs that can't be compared"
_SDIST = ".tar.gz"


def without_unread(sides: Sequence[Side], unread: Sequence[RocwheelError]) -> list[Side]:
    """Return the sides without all packages of a name that a wheel or sdist has which can't be read.

    Raises the problems at once where they name no such file, or where nothing else is left of a side.
    """
    names = {_distribution_of(problem) for problem in each_problem(unread)}
    left = [
        msgspec.structs.replace(side, packages=tuple(one for one in side.packages if one.name not in names))
        for side in sides
    ]
    if unread and ("" in names or not all(side.packages for side in left)):
        raise_all(_UNUSABLE, unread)
    return left


def _distribution_of(problem: RocwheelError) -> str:
    """Return the normalised name of the distribution whose wheel or sdist a problem is about, empty for none."""
    file_name = PurePath(str(problem.source).partition("!")[0]).name if isinstance(problem, InputError) else ""
    if file_name.endswith(".whl"):
        return canonicalize_name(file_name.partition("-")[0])
    return canonicalize_name(file_name.rpartition("-")[0]) if file_name.endswith(_SDIST) else ""
