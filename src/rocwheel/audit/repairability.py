"""Wheels that no repair makes installable, and so are refused: damaged binaries, and members in the wrong place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.audit.places import find_conflicts, outside_reason
from rocwheel.errors import InputError, ProblemsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.audit.tree import InstalledFile

__all__ = ["check_repairable"]

_AGAIN = "Build the wheel again."


def check_repairable(files: Sequence[InstalledFile]) -> None:
    """Check the files of one wheel.

    Raises `InputError`, or `ProblemsError` for several, for symlinks, binaries that can't be read, members that are
    installed outside of the environment, and several files at one path.
    """
    problems = list(_problems(files))
    if problems:
        raise problems[0] if len(problems) == 1 else ProblemsError("wheels that no repair mends", problems)


def _problems(files: Sequence[InstalledFile]) -> Iterator[InputError]:
    for file in files:
        if file.link is not None:
            yield InputError(file.source, "a symlink", expected="files alone", remedy="Build the wheel without.")
        elif file.problem:
            yield InputError(file.source, file.problem, remedy=_AGAIN)
        elif reason := outside_reason(file.member):
            yield InputError(file.source, reason, expected="a place inside the environment", remedy=_AGAIN)
    for conflict in find_conflicts(files):
        expected = "one file at each path"
        yield InputError(conflict.files[0].source, conflict.found, expected=expected, remedy=_AGAIN)
