"""One set of artifacts from several folders, such as the parts of a build that were made on different machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.artifacts.model.artifact import ANY_EXECUTE, FileKind
from rocwheel.core.errors import InputError
from rocwheel.core.reading import have_same_bytes
from rocwheel.core.workers import convert_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.artifacts.model.artifact import Artifact, Member

__all__ = ["unite"]


def unite(subject: str, folders: Iterable[tuple[Artifact, ...]]) -> tuple[Artifact, ...]:
    """Return the artifacts of several folders, in the order of their names.

    One that several folders hold is taken from the first. Raises `InputError` naming both places when they differ:
    in their stage folders, or in a file's bytes or executable bits; `ProblemsError` about ``subject`` for several.
    """
    by_name: dict[str, list[Artifact]] = {}
    for artifact in (artifact for artifacts in folders for artifact in artifacts):
        by_name.setdefault(str(artifact.name), []).append(artifact)
    return tuple(convert_all(subject, _first_of_same, (by_name[name] for name in sorted(by_name))))


def _first_of_same(copies: list[Artifact]) -> Artifact:
    first, *others = copies
    for other in others:
        if other.location != first.location and (difference := _difference(first, other)):
            found = f"is not the same artifact as {other.location}: they differ in {difference}"
            remedy = "Take one of them out of its folder, or leave a folder out."
            raise InputError(first.location, found, remedy=remedy)
    return first


def _difference(one: Artifact, other: Artifact) -> str:
    """Return what two artifacts of one name differ in, empty if in nothing that matters."""
    if sorted(one.stages) != sorted(other.stages):
        return "their stage folders"
    mine, theirs = (_members(artifact) for artifact in (one, other))
    paths = sorted(mine.keys() | theirs.keys())
    return next((path for path in paths if not _is_same(mine.get(path), theirs.get(path))), "")


def _members(artifact: Artifact) -> dict[str, Member]:
    """Return the members by path; archives need not list folders."""
    return {member.path: member for member in artifact.members if member.kind is not FileKind.DIRECTORY}


def _is_same(one: Member | None, other: Member | None) -> bool:
    if one is None or other is None or (one.kind, one.link) != (other.kind, other.link):
        return False
    if one.source is None or other.source is None:
        return True
    if bool(one.mode & ANY_EXECUTE) != bool(other.mode & ANY_EXECUTE):
        return False
    with one.source.view() as mine, other.source.view() as theirs:
        return have_same_bytes(mine, theirs)
