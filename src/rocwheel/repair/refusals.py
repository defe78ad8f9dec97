"""What a repair refuses.

These are wheels that it can't make installable, with damaged binaries or metadata or bad members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from rocwheel.core.errors import InputError
from rocwheel.core.workers import raise_all
from rocwheel.installed.conflicts import find_conflicts
from rocwheel.targets.declaration import DECLARATION_NAME
from rocwheel.wheels.names import name_and_version
from rocwheel.wheels.zip_directory import outside_reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.installed.tree import Distribution, InstalledFile

__all__ = ["check_repairable"]

_AGAIN = "Build the wheel again."
# What a repair writes again, and what installers do without.
_REPAIRABLE = ("RECORD", "WHEEL has no Tag", "WHEEL has no Root-Is-Purelib")


def check_repairable(owner: Distribution, files: Sequence[InstalledFile]) -> None:
    """Raise `InputError` for a wheel that no repair makes installable, or `ProblemsError` for several problems.

    These are metadata that installers refuse, symlinks, binaries that can't be read, members that are installed outside
    of the environment, and several files at one path.
    """
    problems = [*_metadata_problems(owner), *_problems(files)]
    raise_all("wheels that can't be repaired", problems)


def _metadata_problems(owner: Distribution) -> Iterator[InputError]:
    for problem in owner.problems:
        text = problem.found.removeprefix(f"{owner.dist_info} has no ")
        if not text.startswith((*_REPAIRABLE, DECLARATION_NAME)):
            yield InputError(owner.source, problem.found, remedy=_AGAIN)
    (folder, version), (name, _) = name_and_version(owner.dist_info), name_and_version(owner.label)
    if not version or canonicalize_name(folder) != canonicalize_name(name):
        expected = "a .dist-info folder of the wheel's own name"
        yield InputError(owner.source, f"has the metadata folder {owner.dist_info}", expected=expected, remedy=_AGAIN)


def _problems(files: Sequence[InstalledFile]) -> Iterator[InputError]:
    for file in files:
        if file.link is not None:
            yield InputError(file.source, "a symlink", expected="only files", remedy="Build the wheel without it.")
        elif file.problem:
            yield InputError(file.source, file.problem, remedy=_AGAIN)
        elif reason := outside_reason(file.member):
            yield InputError(file.source, reason, expected="a place inside the environment", remedy=_AGAIN)
    for conflict in find_conflicts(files):
        expected = "one file at each path"
        yield InputError(conflict.files[0].source, conflict.found, expected=expected, remedy=_AGAIN)
