"""What has to hold before a package set gets another version."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from packaging.version import Version

from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.workers import raise_all

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from rocwheel.packages.promoting.candidates import Candidate

__all__ = ["check_output", "check_versions", "checked_version"]

_OPTION = "--to"


def checked_version(text: str) -> str:
    """Return the version that is asked for, normalised; raise `InputError` when it isn't one (:pep:`440`)."""
    try:
        return str(Version(text))
    except ValueError as e:
        raise InputError(_OPTION, f"is {text!r}", expected="a version as PEP 440 defines it, such as 7.2.0") from e


def check_versions(dist: Path, candidates: Sequence[Candidate], new: str) -> str:
    """Return the one version of the candidates, which is lower than ``new``.

    Raises `InputError`, or `ProblemsError` with all of these: several versions, a candidate of the new version, and one
    of a later version.
    """
    by_version: defaultdict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_version[candidate.version].append(candidate)
    problems = []
    if len(by_version) > 1:
        listed = "; ".join(f"{version}: {_names(group)}" for version, group in by_version.items())
        remedy = "Keep the files of one version in the folder, and move the others."
        problems.append(InputError(dist, f"holds several versions: {listed}", expected="one", remedy=remedy))
    for version, group in by_version.items():
        if Version(version) == Version(new):
            found = f"is {new}, which {_names(group)} in {dist} {'has' if len(group) == 1 else 'have'} already"
            problems.append(InputError(_OPTION, found, expected="a version that is not there yet"))
        elif Version(version) > Version(new):
            found = f"is {new}, which is lower than {version} of {_names(group)}"
            problems.append(InputError(_OPTION, found, expected="a later version: installers would take the old one"))
    raise_all(str(dist), problems)
    return next(iter(by_version))


def _names(group: Sequence[Candidate]) -> str:
    names = [candidate.path.name for candidate in group]
    return ", ".join(names) if len(names) < 4 else f"{', '.join(names[:2])} and {count(len(names) - 2, 'other file')}"


def check_output(dist: Path, dest_dir: Path, places: Collection[str]) -> None:
    """Raise `InputError`, or `ProblemsError`, when a file would stand among the candidates or in place of another."""
    if dest_dir.resolve().is_relative_to(dist.resolve()):
        found = "holds the candidates" if dest_dir.resolve() == dist.resolve() else f"is a folder in {dist}"
        raise InputError(dest_dir, found, expected="a folder outside of theirs", remedy="Change --dest-dir.")
    taken = [dest_dir / place for place in places if (dest_dir / place).exists() or (dest_dir / place).is_symlink()]
    remedy = "Remove it, or change --dest-dir."
    problems = [InputError(path, "exists already", expected="no file of that name", remedy=remedy) for path in taken]
    raise_all(str(dest_dir), problems)
