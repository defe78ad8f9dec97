"""Whether planned files can be written and installed: the limits of Linux on names and paths (``limits.h``)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rocwheel.distributions.formats.wheel import normalized_file_part
from rocwheel.foundation.errors import InputError, ProblemsError
from rocwheel.packages.plan import TarMember

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.packages.plan import Plan, PlannedWheel

__all__ = ["check_names"]

_NAME_MAX = 255
_OUTPUT_MAX = _NAME_MAX - 10
"""Room for the dots and letters that a file has in its name while it is written."""
_PATH_MAX = 4096
_SITE_MAX = 512
"""Room for the path of site-packages."""
_SHOWN = 100


def check_names(plan: Plan) -> None:
    """Raise `ProblemsError` with every file whose name or path would be too long to write or to install."""
    outputs = [wheel.name.file_name for wheel in plan.wheels]
    outputs += [f"{normalized_file_part(sdist.distribution)}-{sdist.version}.tar.gz" for sdist in plan.sdists]
    paths = dict.fromkeys(path for wheel in plan.wheels for path in _paths(wheel))
    problems = [
        *(problem for name in outputs for problem in _long_name(name, _OUTPUT_MAX, "Shorten --version or the name.")),
        *(problem for path in paths for problem in _path_problems(path)),
    ]
    if problems:
        subject = "names of files"
        raise ProblemsError(subject, problems)


def _paths(wheel: PlannedWheel) -> Iterator[str]:
    for member in wheel.members:
        yield member.path
        if isinstance(member, TarMember):
            yield from (entry.path for entry in member.entries)
    yield from (f"{wheel.name.dist_info}/licenses/{text.path}" for text in wheel.licenses)


def _path_problems(path: str) -> Iterator[InputError]:
    remedy = "Rename it, or exclude it in the recipe."
    yield from _long_name(path, _NAME_MAX, remedy)
    length, limit = len(os.fsencode(path)), _PATH_MAX - _SITE_MAX
    if length > limit:
        expected = f"at most {limit}, as Linux allows {_PATH_MAX} together with the path of site-packages"
        yield InputError(_shown(path), f"is a path of {length} bytes", expected=expected, remedy=remedy)


def _long_name(path: str, limit: int, remedy: str) -> Iterator[InputError]:
    length = max(len(os.fsencode(name)) for name in path.split("/"))
    if length > limit:
        yield InputError(_shown(path), f"has a name of {length} bytes", expected=f"at most {limit}", remedy=remedy)


def _shown(path: str) -> str:
    return path if len(path) <= _SHOWN else f"{path[:_SHOWN]}..."
