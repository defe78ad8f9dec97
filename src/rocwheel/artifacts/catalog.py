"""What a folder of artifacts holds, merged into one install prefix."""

from __future__ import annotations

import enum
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.artifacts.names import ArtifactName
from rocwheel.files import FileRange
from rocwheel.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["ArtifactName", "Catalog", "Entry", "FileKind", "SdkManifest", "open_catalog"]


class FileKind(enum.Enum):
    """What an entry of an artifact is."""

    FILE = "file"
    SYMLINK = "symlink"
    DIRECTORY = "directory"


class SdkManifest(msgspec.Struct, frozen=True):
    """``share/therock/therock_manifest.json``: what the SDK was built from."""

    rocm_version: str = ""
    rocm_package_version: str = ""
    the_rock_commit: str | None = None
    flags: dict[str, Any] = {}

    @property
    def kpack_split(self) -> bool:
        """Whether device code was split into one artifact per target (``flags.KPACK_SPLIT_ARTIFACTS``)."""
        return self.flags.get("KPACK_SPLIT_ARTIFACTS") is True


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


class Catalog(msgspec.Struct, frozen=True):
    """The artifacts of a folder and their entries."""

    root: str
    artifacts: tuple[ArtifactName, ...]
    entries: tuple[Entry, ...]
    """Sorted by path, then artifact. A path that several artifacts hold appears once for each."""
    manifest: SdkManifest | None


@contextmanager
def open_catalog(directory: Path, *, progress: Progress = SILENT) -> Iterator[Catalog]:
    """Read the artifacts of ``directory``; file ranges are valid inside the block, in every process of the user."""
    progress.begin(f"reading {directory}", 0)
    yield Catalog(str(directory), (), (), None)
