"""The files of several builds, sorted into those for all GPUs and those for one target or family."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.model.artifact import Artifact, FileKind, Member, place
from rocwheel.artifacts.model.names import GENERIC, ArtifactName
from rocwheel.binary.code_objects.target_id import processor_of
from rocwheel.targets.catalog.families import is_family
from rocwheel.targets.kernel_files.classify import classify_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Shard", "ShardFile", "sort_shard"]


class ShardFile(msgspec.Struct, frozen=True):
    """A file or symlink of a shard, and the artifact in which the merged set has it."""

    artifact: ArtifactName
    """With the target ``generic``, or that of one GPU, without features."""
    stage: str
    member: Member
    source: ArtifactName
    location: str
    """The folder or archive it was read from."""

    @property
    def path(self) -> str:
        """Where it stands in the merged prefix."""
        return self.member.path[len(self.stage) + 1 :]

    @property
    def place(self) -> str:
        """What to call it in a message."""
        return place(self.location, self.member.path)

    @property
    def is_host(self) -> bool:
        """Whether it is for all GPUs."""
        return self.artifact.target == GENERIC

    @property
    def key(self) -> tuple[ArtifactName, str]:
        """Its place in the merged set: two shards' files with the same key are one file."""
        return self.artifact, self.member.path


class Shard(msgspec.Struct, frozen=True):
    """One build: where it is, its artifacts, and their files, sorted by their place in the merged set."""

    location: str
    artifacts: tuple[Artifact, ...]
    files: tuple[ShardFile, ...]

    @property
    def targets(self) -> frozenset[str]:
        """The targets that it has a file for."""
        return frozenset(file.artifact.target for file in self.files if not file.is_host)


def sort_shard(location: str, artifacts: Sequence[Artifact]) -> Shard:
    """Return a shard with each file in the artifact that the merged set has it in.

    In an artifact of one target all files stay: a file there may be known by its artifact alone. In those of all
    targets, and of a family of them, which hold host files too, a file is where the table of kernel files says.
    """
    files = sorted(_files(artifacts), key=lambda file: file.key)
    return Shard(location, tuple(artifacts), tuple(files))


def _files(artifacts: Iterable[Artifact]) -> Iterator[ShardFile]:
    for artifact in artifacts:
        own = _own_target(artifact.name)
        for member in artifact.members:
            stage = artifact.stage_of(member.path)
            if member.kind is FileKind.DIRECTORY or stage is None:
                continue
            target = own or _target_of(member.path[len(stage) + 1 :])
            name = msgspec.structs.replace(artifact.name, target=target)
            yield ShardFile(name, stage, member, artifact.name, artifact.location)


def _own_target(name: ArtifactName) -> str:
    """Return the target of an artifact of one target; empty for those of several."""
    if name.target == GENERIC or is_family(name.target):
        return ""
    return processor_of(name.target)


def _target_of(path: str) -> str:
    found = classify_path(path)
    # Names of artifacts hold no underscore; the names of packages have a dash there, too.
    return found.target.replace("_", "-") if found else GENERIC
