"""What a folder of artifacts holds, merged into one install prefix."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.model.artifact import Artifact, FileKind
from rocwheel.artifacts.model.names import ArtifactName
from rocwheel.artifacts.model.sdk_manifest import SDK_MANIFEST_PATH, SdkManifest
from rocwheel.artifacts.reading.open import open_artifacts
from rocwheel.artifacts.reading.unite import unite
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileRange
from rocwheel.core.workers import convert_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rocwheel.core.errors import RocwheelError

__all__ = ["ArtifactName", "Catalog", "Entry", "FileKind", "SdkManifest", "make_catalog", "open_catalog"]


class Entry(msgspec.Struct, frozen=True):
    """One file, symlink or directory of one artifact."""

    path: str
    """Where it stands in the merged prefix: relative, with ``/``."""
    kind: FileKind
    artifact: ArtifactName
    mode: int
    """Permission bits only."""
    source: FileRange | None = None
    """The bytes of a file; none for symlinks and directories."""
    link: str | None = None
    """The raw text of a symlink; none for others."""
    stage: str = ""
    """The stage folder of the artifact that it stands in; empty where that is not known."""


class Catalog(msgspec.Struct, frozen=True):
    """The artifacts of a folder and their entries."""

    root: str
    """The folder, or the folders, for messages."""
    artifacts: tuple[ArtifactName, ...]
    """Sorted; those without entries included."""
    entries: tuple[Entry, ...]
    """Sorted by path, then artifact. A path that several artifacts hold appears once for each."""
    manifest: SdkManifest | None
    """Of the first artifact that has one."""
    locations: dict[str, str] = {}
    """The folder or archive that each artifact was read from, by its name."""


@contextmanager
def open_catalog(
    directory: Path,
    *more: Path,
    progress: Progress = SILENT,
    unread: list[RocwheelError] | None = None,
    check: Callable[[Mapping[Path, tuple[Entry, ...]]], None] = lambda _: None,
) -> Iterator[Catalog]:
    """Read the artifacts of ``directory`` as one catalogue, with those of ``more`` folders as `unite` does it.

    ``unread`` and errors are as for `open_artifacts`; ``check`` raises what is wrong with several folders together,
    by the entries of each, before they are united.

    Its file ranges are valid inside the block, in every thread and in every process of the same user on the machine.
    """
    directories = tuple(dict.fromkeys((directory, *more)))
    root = " and ".join(map(str, directories))
    with ExitStack() as stack:

        def read(folder: Path) -> tuple[Artifact, ...]:
            return stack.enter_context(open_artifacts(folder, progress=progress, unread=unread))

        folders = convert_all(root, read, directories)
        if more:
            check({folder: _sorted(artifacts) for folder, artifacts in zip(directories, folders, strict=True)})
        yield make_catalog(root, unite(root, folders))


def make_catalog(root: Path | str, artifacts: Sequence[Artifact]) -> Catalog:
    """Merge artifacts into a catalogue. Raises `InputError` when the SDK manifest among them is malformed."""
    entries = _sorted(artifacts)
    names = tuple(artifact.name for artifact in artifacts)
    locations = {str(artifact.name): artifact.location for artifact in artifacts}
    return Catalog(str(root), names, entries, _find_manifest(entries), locations)


def _sorted(artifacts: Iterable[Artifact]) -> tuple[Entry, ...]:
    """Return the entries of artifacts, by path, then artifact."""
    entries = (entry for artifact in artifacts for entry in _entries(artifact))
    return tuple(sorted(entries, key=lambda entry: (entry.path, entry.artifact)))


def _entries(artifact: Artifact) -> Iterator[Entry]:
    folders: set[str] = set()
    for stage in artifact.stages:
        for member in artifact.members:
            if not member.path.startswith(f"{stage}/"):
                continue
            path = member.path[len(stage) + 1 :]
            if member.kind is FileKind.DIRECTORY:
                if path in folders:
                    continue
                folders.add(path)
            yield Entry(path, member.kind, artifact.name, member.mode, member.source, member.link, stage)


def _find_manifest(entries: Sequence[Entry]) -> SdkManifest | None:
    for entry in entries:
        if entry.path == SDK_MANIFEST_PATH and entry.source is not None:
            with entry.source.view() as data:
                return SdkManifest.parse(bytes(data), f"{entry.artifact}: {entry.path}")
    return None
