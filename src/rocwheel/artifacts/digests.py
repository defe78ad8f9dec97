"""What the artifacts of a catalogue are, as a digest of each: the same for the folder and the archive of an artifact.

The digest is the SHA-256 of a text with a line for each file and symlink, sorted by path: the SHA-256 of the file, or
of the symlink's text, in hexadecimal digits, two blanks, and the path in the artifact, stage folder included. That is
what sha256sum(1) prints for the files of an artifact's folder.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.content.content import FileContent, SequenceContent
from rocwheel.distributions.content.digest import digest_content
from rocwheel.distributions.packing.origin import origin_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Executor

    from rocwheel.artifacts.catalog import Entry
    from rocwheel.foundation.cache.store import Store

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


def digest_artifacts(
    entries: Iterable[Entry], executor: Executor, kept: Store | None = None
) -> dict[str, ArtifactDigest]:
    """Return the digests of artifacts by their names, of all files and symlinks among ``entries``; they are read whole.

    Those of artifacts whose files have not changed are taken from the ``kept`` store. Raises `InputError` for a file
    that can't be read, `ChangedFileError` for one that has changed.
    """
    artifacts: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.source or entry.link is not None:
            artifacts.setdefault(str(entry.artifact), []).append(entry)
    return {name: _recall(name, own, executor, kept) for name, own in sorted(artifacts.items())}


def _recall(name: str, entries: Sequence[Entry], executor: Executor, kept: Store | None) -> ArtifactDigest:
    key = _note_key(name, entries) if kept else None
    noted = kept.get(key) if kept and key else None
    if noted:
        return msgspec.msgpack.decode(noted.facts, type=ArtifactDigest)
    digest = _digest(name, entries, executor)
    if kept and key:
        kept.put(key, msgspec.msgpack.encode(digest))
    return digest


def _note_key(name: str, entries: Sequence[Entry]) -> bytes | None:
    """Return what is another value when any file or symlink of an artifact is; none where stamps don't tell."""
    files = origin_of(SequenceContent(tuple(FileContent(entry.source) for entry in entries if entry.source)))
    if files is None:
        return None
    places = [(entry.stage, entry.path, entry.link) for entry in entries]
    return hashlib.sha256(b"artifact" + files + ascii([name, places]).encode()).digest()


def _digest(name: str, entries: Sequence[Entry], executor: Executor) -> ArtifactDigest:
    chunks = [entries[start : start + _CHUNK] for start in range(0, len(entries), _CHUNK)]
    lines = sorted(_joined(executor.map(_lines, chunks)))
    text = "".join(f"{sha256}  {path}\n" for path, sha256 in lines)
    sha256 = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return ArtifactDigest(name, len(lines), sum(entry.source.size for entry in entries if entry.source), sha256)


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
