"""Merges the files of a folder of artifacts into one install prefix, and resolves its symlinks."""

from __future__ import annotations

import enum
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.artifact import Artifact, ArtifactName, FileKind, ancestors
from rocwheel.artifacts.reading import open_artifacts, unite_artifacts
from rocwheel.artifacts.sdk_files import SDK_MANIFEST_PATH, SdkManifest
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileRange
from rocwheel.core.symlinks import Symlinks, WalkEnd
from rocwheel.core.workers import map_collecting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rocwheel.core.errors import RocwheelError


class Entry(msgspec.Struct, frozen=True):
    """A file, symlink, or directory in one artifact."""

    path: str
    """The ``/``-separated path in the merged prefix."""
    kind: FileKind
    artifact: ArtifactName
    mode: int
    """The permission bits."""
    source: FileRange | None = None
    """The bytes of a file, or `None` for symlinks and directories."""
    link: str | None = None
    """The raw target of a symlink, or `None` for other entries."""
    stage: str = ""
    """The stage folder of the artifact that contains the entry; empty if unknown."""


class Catalog(msgspec.Struct, frozen=True):
    """The artifacts in a folder, and their entries."""

    root: str
    """The location of the folder or folders, for messages."""
    artifacts: tuple[ArtifactName, ...]
    """The names of all artifacts, sorted. Artifacts without entries are included."""
    entries: tuple[Entry, ...]
    """The entries, sorted by path and then by artifact. A path in several artifacts appears once for each of them."""
    manifest: SdkManifest | None
    """The manifest of the first artifact that has one."""
    locations: dict[str, str] = {}
    """The folder or archive of each artifact, keyed by the artifact's name."""


@contextmanager
def open_catalog(
    directory: Path,
    *more: Path,
    progress: Progress = SILENT,
    unread: list[RocwheelError] | None = None,
    check: Callable[[Mapping[Path, tuple[Entry, ...]]], None] = lambda _: None,
) -> Iterator[Catalog]:
    """Read the artifacts in ``directory`` and in the folders ``more`` as one catalog, combined by `unite_artifacts`.

    ``unread`` and the errors are the same as in `open_artifacts`. ``check`` receives the entries of each folder before
    they are combined. ``check`` raises errors that concern several folders.

    The file ranges are valid inside the block, in every thread and in every process of the same user on this machine.
    """
    directories = tuple(dict.fromkeys((directory, *more)))
    root = " and ".join(map(str, directories))
    with ExitStack() as stack:

        def read(folder: Path) -> tuple[Artifact, ...]:
            return stack.enter_context(open_artifacts(folder, progress=progress, unread=unread))

        folders = map_collecting(root, read, directories)
        if more:
            check({folder: _sorted(artifacts) for folder, artifacts in zip(directories, folders, strict=True)})
        yield make_catalog(root, unite_artifacts(root, folders))


def make_catalog(root: Path | str, artifacts: Sequence[Artifact]) -> Catalog:
    """Merge artifacts into a catalog. Raises `InputError` if an SDK manifest is malformed."""
    entries = _sorted(artifacts)
    names = tuple(artifact.name for artifact in artifacts)
    locations = {str(artifact.name): artifact.location for artifact in artifacts}
    return Catalog(str(root), names, entries, _find_manifest(entries), locations)


def _sorted(artifacts: Iterable[Artifact]) -> tuple[Entry, ...]:
    """Return the entries of artifacts, sorted by path and then by artifact."""
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


class LinkOutcome(enum.Enum):
    """The outcome of following symlinks."""

    FILE = "file"
    DIRECTORY = "directory"
    DANGLING = "dangling"
    LOOP = "loop"
    OUTSIDE = "outside"

    @property
    def is_found(self) -> bool:
        """Whether the symlinks point to an existing path in the prefix."""
        return self in (LinkOutcome.FILE, LinkOutcome.DIRECTORY)


_OUTCOMES = {
    WalkEnd.MISSING: LinkOutcome.DANGLING,
    WalkEnd.LOOP: LinkOutcome.LOOP,
    WalkEnd.ABOVE: LinkOutcome.OUTSIDE,
    WalkEnd.OUTSIDE: LinkOutcome.OUTSIDE,
}


class LinkTarget(msgspec.Struct, frozen=True):
    """The path that another path points to after all symlinks are followed."""

    outcome: LinkOutcome
    path: str
    """The path of the final file or directory, or the path that is missing, in a loop, or outside the prefix.

    An empty path is the prefix itself.
    """
    entry: Entry | None = None
    """The entry, if the path points to a file."""


class PrefixIndex:
    """The entries of a prefix, keyed by path.

    The parent of an entry is a directory, even if it has no separate entry.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        """Index the entries. If several entries have the same path, the first one that is not a directory is used."""
        self.entries: dict[str, Entry] = {}
        self.directories: set[str] = {""}
        for entry in entries:
            known = self.entries.get(entry.path)
            if known is None or (known.kind is FileKind.DIRECTORY is not entry.kind):
                self.entries[entry.path] = entry
            self.directories.update(ancestors(entry.path))

    def kind(self, path: str) -> FileKind | None:
        """Return the type of the entry at ``path`` without following links, or `None` if there is no entry."""
        entry = self.entries.get(path)
        if entry is not None:
            return entry.kind
        return FileKind.DIRECTORY if path in self.directories else None

    def is_directory(self, path: str) -> bool:
        """Return whether ``path`` is a directory, without following links."""
        return self.kind(path) is FileKind.DIRECTORY

    def link_text(self, path: str) -> str | WalkEnd | None:
        """Return the target of the symlink at ``path``, or `None` if the path is not a symlink.

        An absolute target points outside the prefix.
        """
        entry = self.entries.get(path)
        text = entry.link if entry is not None else None
        return WalkEnd.OUTSIDE if text is not None and text.startswith("/") else text


def resolve_link(index: PrefixIndex, path: str) -> LinkTarget:
    """Follow every symlink in ``path``, including the last component, as the kernel would inside the prefix.

    An absolute link, or a link that points above the prefix, results in `LinkOutcome.OUTSIDE`.
    """
    walk = Symlinks(index.link_text, index.is_directory).follow(path)
    if walk.end is not WalkEnd.REACHED:
        return LinkTarget(_OUTCOMES[walk.end], walk.path)
    if index.is_directory(walk.path):
        return LinkTarget(LinkOutcome.DIRECTORY, walk.path)
    entry = index.entries.get(walk.path)
    return LinkTarget(LinkOutcome.DANGLING if entry is None else LinkOutcome.FILE, walk.path, entry)


def describe_end(target: LinkTarget) -> str:
    """Return a description of a link's target, as a phrase that follows "a symlink"."""
    path = target.path or "."
    return {
        LinkOutcome.FILE: f"to {path}, but no package contains it",
        LinkOutcome.DIRECTORY: (
            f"to the folder {path}, which wheels can't contain; only the devel package may contain it"
        ),
        LinkOutcome.DANGLING: f"to {path}, but no artifact contains it",
        LinkOutcome.LOOP: f"that loops at {path}",
        LinkOutcome.OUTSIDE: f"that leaves the prefix at {path}",
    }[target.outcome]
