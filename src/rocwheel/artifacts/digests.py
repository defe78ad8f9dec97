"""What the artifacts of a catalogue are, as a digest of each: the same for the folder and the archive of an artifact.

The digest is the SHA-256 of a text with a line for each file and symlink, sorted by path: the SHA-256 of the file, or
of the symlink's text, in hexadecimal digits, two blanks, and the path in the artifact, stage folder included. That is
what sha256sum(1) prints for the files of an artifact's folder.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.content.content import FileContent
from rocwheel.distributions.content.digest import digest_content

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Executor

    from rocwheel.artifacts.catalog import Entry

__all__ = ["ArtifactDigest", "digest_artifacts"]

_CHUNK = 64
"""Files that a worker reads in one task: most are small, and a task for each would cost more than reading it."""


class ArtifactDigest(msgspec.Struct, frozen=True):
    """An artifact, its files and symlinks counted, with the bytes of its files and its digest."""

    name: str
    """Such as ``blas_lib_generic``."""
    files: int
    size: int
    sha256: str
    """In hexadecimal digits."""


def digest_artifacts(entries: Iterable[Entry], executor: Executor) -> dict[str, ArtifactDigest]:
    """Return the digests of artifacts by their names, of all files and symlinks among ``entries``; they are read whole.

    Raises `InputError` for a file that can't be read, `ChangedFileError` for one that has changed.
    """
    found = [entry for entry in entries if entry.source or entry.link is not None]
    chunks = [found[start : start + _CHUNK] for start in range(0, len(found), _CHUNK)]
    lines: dict[str, list[tuple[str, str]]] = {}
    sizes: dict[str, int] = {}
    for entry, line in zip(found, _joined(executor.map(_lines, chunks)), strict=True):
        name = str(entry.artifact)
        lines.setdefault(name, []).append(line)
        sizes[name] = sizes.get(name, 0) + (entry.source.size if entry.source else 0)
    return {name: ArtifactDigest(name, len(own), sizes[name], _digest(own)) for name, own in sorted(lines.items())}


def _joined(parts: Iterable[Sequence[tuple[str, str]]]) -> Iterator[tuple[str, str]]:
    for part in parts:
        yield from part


def _lines(entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """Return the path of each entry in its artifact, and its SHA-256."""
    return [(f"{entry.stage}/{entry.path}".lstrip("/"), _sha256(entry)) for entry in entries]


def _sha256(entry: Entry) -> str:
    if entry.source is None:
        return hashlib.sha256((entry.link or "").encode("utf-8", "surrogateescape")).hexdigest()
    return digest_content(FileContent(entry.source)).sha256.hex()


def _digest(lines: Iterable[tuple[str, str]]) -> str:
    text = "".join(f"{sha256}  {path}\n" for path, sha256 in sorted(lines))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
