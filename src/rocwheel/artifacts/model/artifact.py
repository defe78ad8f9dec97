"""One artifact: stage folders, each an install prefix, and what they hold."""

from __future__ import annotations

import enum
import logging
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.model.manifest import MANIFEST_NAME
from rocwheel.artifacts.model.names import ArtifactName
from rocwheel.artifacts.model.paths import ancestors, link_fault, path_fault
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.reading import FileRange
from rocwheel.core.writing import plain_mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.core.errors import RocwheelError

__all__ = ["ANY_EXECUTE", "PERMISSIONS", "Artifact", "FileKind", "Member", "checked", "place"]

logger = logging.getLogger(__name__)

ANY_EXECUTE = 0o111
"""The bits of a mode that let anybody run a file."""
PERMISSIONS = 0o777
"""The mode bits that an artifact keeps; set-user-id, set-group-id and sticky bits are dropped."""


class FileKind(enum.Enum):
    """What a member of an artifact is."""

    FILE = "file"
    SYMLINK = "symlink"
    DIRECTORY = "directory"


class Member(msgspec.Struct, frozen=True):
    """One file, symlink or directory, where it stands in its artifact."""

    path: str
    """Relative to the artifact, with ``/``; begins with a stage folder."""
    kind: FileKind
    mode: int
    """Permission bits only; those of a symlink mean nothing and are 0o777."""
    source: FileRange | None = None
    """The bytes of a file; none for symlinks and directories."""
    link: str | None = None
    """The raw text of a symlink; none for others."""

    @property
    def plain_mode(self) -> int:
        """The mode in an artifact that is made of this one: whoever built it, and with which umask, must not show."""
        if self.kind is FileKind.SYMLINK:
            return PERMISSIONS
        return 0o755 if self.kind is FileKind.DIRECTORY else plain_mode(self.mode)


class Artifact(msgspec.Struct, frozen=True):
    """An artifact as it was found, in a folder or in an archive."""

    name: ArtifactName
    location: str
    """The folder or archive it was read from."""
    stages: tuple[str, ...]
    """Its stage folders, as its manifest lists them."""
    members: tuple[Member, ...]

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(member.source.size for member in self.members if member.source)

    def stage_of(self, path: str) -> str | None:
        """Return the stage folder that a member's path is in, if any; the innermost of nested ones."""
        inside = [stage for stage in self.stages if path.startswith(f"{stage}/")]
        return max(inside, key=len, default=None)


def place(location: object, path: str) -> str:
    """Return what to call a member of the artifact at ``location`` in a message; unprintable text is escaped."""
    return f"{location}/{path if path.isprintable() else ascii(path)}"


def checked(artifact: Artifact, problems: list[RocwheelError]) -> Artifact:
    """Return the artifact without what is outside of its stage folders.

    Raises `ProblemsError` with ``problems``, those that reading it brought, and with each member that is unusable: its
    path is unsafe or occurs twice, it is below a file or symlink, it is a symlink that leaves its stage folder, or it
    is a file deeper than the manifest but in no stage folder (it would be lost). A stage folder without members is
    usual: TheRock lists every folder that could have held some.
    """
    counts = Counter(member.path for member in artifact.members if member.kind is not FileKind.DIRECTORY)
    folders = {member.path for member in artifact.members if member.kind is FileKind.DIRECTORY}
    # Each once: two members of one name have the same faults.
    faults = dict.fromkeys(
        (member.path, fault) for member in artifact.members for fault in _faults(member, artifact, counts, folders)
    )
    problems = problems + [InputError(place(artifact.location, path), fault) for path, fault in faults]
    if problems:
        raise ProblemsError(artifact.location, problems)
    return msgspec.structs.replace(artifact, members=tuple(_staged_members(artifact)))


def _staged_members(artifact: Artifact) -> Iterator[Member]:
    for member in artifact.members:
        if member.path in artifact.stages or artifact.stage_of(member.path) is not None:
            yield member
        elif member.kind is not FileKind.DIRECTORY and member.path != MANIFEST_NAME:
            logger.debug("%s is outside the stage folders: ignored", place(artifact.location, member.path))


def _faults(member: Member, artifact: Artifact, counts: Counter[str], folders: set[str]) -> Iterator[str]:
    if fault := path_fault(member.path):
        yield f"its path {fault}"
        return
    if counts[member.path] > 1 or (counts[member.path] and member.path in folders):
        yield "is there more than once"
    for folder in ancestors(member.path):
        if counts[folder]:
            yield f"is below {folder!r}, which is not a folder"
    if member.kind is FileKind.DIRECTORY:
        return
    if member.path in artifact.stages:
        yield f"is a {member.kind.value}, but the manifest lists it as a stage folder"
        return
    stage = artifact.stage_of(member.path)
    if stage is None and "/" in member.path:
        yield "is in no stage folder of the manifest"
    if member.link is not None and (fault := link_fault(member.path.removeprefix(f"{stage}/"), member.link)):
        yield f"this symlink {fault}"
