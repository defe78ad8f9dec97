"""Summarizes each artifact in a catalog: the number of its files, their total size, and a digest.

The digest is the SHA-256 of text with one line per file and symlink, sorted by path. A line contains the SHA-256 of the
file or of the symlink's target in hexadecimal, two spaces, and the path in the artifact including its stage folder.
sha256sum(1) prints the same lines for the files of an artifact folder. ``artifact_manifest.txt`` is excluded.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.artifact import FileKind
from rocwheel.core.workers import iter_batches
from rocwheel.wheels.content import FileContent, SequenceContent
from rocwheel.wheels.member_cache import origin_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Executor

    from rocwheel.artifacts.artifact import ArtifactName
    from rocwheel.artifacts.catalog import Catalog, Entry
    from rocwheel.core.cache import EntryStore


_BATCH = 8 << 20
"""The approximate number of bytes that a worker reads in one task."""
_LEAST = 16 << 10
"""The minimum cost of a file, in bytes: opening a file also takes time."""


class ArtifactDigest(msgspec.Struct, frozen=True):
    """An artifact with its digest, the number of its files and symlinks, and the total size of its files."""

    name: str
    """The full name of the artifact, such as ``blas_lib_generic``."""
    files: int
    size: int
    sha256: str
    """The digest in hexadecimal."""


def digest_artifacts(
    entries: Iterable[Entry], executor: Executor, kept: EntryStore | None = None
) -> dict[str, ArtifactDigest]:
    """Return the digest of each artifact in ``entries``, based on all its files and symlinks, keyed by name.

    Reads all files completely, unless the ``kept`` store contains the digest of an unchanged artifact. Raises
    `InputError` if a file can't be read, and `ChangedFileError` if a file has changed.
    """
    artifacts: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.source or entry.link is not None:
            artifacts.setdefault(str(entry.artifact), []).append(entry)
    digests = {name: noted for name, own in artifacts.items() if kept and (noted := _recall(name, own, kept))}
    unknown = {name: own for name, own in artifacts.items() if name not in digests}
    hashes = iter(_hash_all([entry for own in unknown.values() for entry in own], executor))
    for name, own in unknown.items():
        digests[name] = _digest(name, own, islice(hashes, len(own)))
        if kept and (key := _note_key(name, own)):
            kept.put(key, msgspec.msgpack.encode(digests[name]))
    return dict(sorted(digests.items()))


def _recall(name: str, entries: Sequence[Entry], kept: EntryStore) -> ArtifactDigest | None:
    key = _note_key(name, entries)
    noted = kept.get(key) if key else None
    return msgspec.msgpack.decode(noted.facts, type=ArtifactDigest) if noted else None


def _note_key(name: str, entries: Sequence[Entry]) -> bytes | None:
    """Return a key that changes with any file or symlink in an artifact, or `None` if stamps can't show all changes."""
    files = origin_of(SequenceContent(tuple(FileContent(entry.source) for entry in entries if entry.source)))
    if files is None:
        return None
    places = [(entry.stage, entry.path, entry.link) for entry in entries]
    return hashlib.sha256(b"artifact" + files + ascii([name, places]).encode()).digest()


def _digest(name: str, entries: Sequence[Entry], hashes: Iterable[str]) -> ArtifactDigest:
    places = [f"{entry.stage}/{entry.path}".lstrip("/") for entry in entries]
    text = "".join(f"{sha256}  {path}\n" for path, sha256 in sorted(zip(places, hashes, strict=True)))
    sha256 = hashlib.sha256(_encoded(text)).hexdigest()
    return ArtifactDigest(name, len(places), sum(entry.source.size for entry in entries if entry.source), sha256)


def _hash_all(entries: Sequence[Entry], executor: Executor) -> list[str]:
    """Return the SHA-256 of each entry. Large entries are read first, so that all workers are busy until the end."""
    costs = [_LEAST + (entry.source.size if entry.source else 0) for entry in entries]
    order = sorted(range(len(entries)), key=lambda at: -costs[at])
    batches = list(iter_batches(order, costs.__getitem__, _BATCH))
    hashes = [""] * len(entries)
    found = executor.map(_hash_batch, [[entries[at] for at in batch] for batch in batches])
    for batch, those in zip(batches, found, strict=True):
        for at, sha256 in zip(batch, those, strict=True):
            hashes[at] = sha256
    return hashes


def _hash_batch(entries: Iterable[Entry]) -> list[str]:
    return [_hash_entry(entry) for entry in entries]


def _hash_entry(entry: Entry) -> str:
    if entry.source is None:
        return hashlib.sha256(_encoded(entry.link or "")).hexdigest()
    sha256 = hashlib.sha256()
    entry.source.feed(sha256.update)
    return sha256.hexdigest()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class EntrySummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file, symlink, or directory."""

    path: str
    kind: FileKind
    mode: str
    """The permission bits in octal notation, such as ``755``."""
    bytes: int = 0
    link: str | None = None


class ArtifactSummary(msgspec.Struct, frozen=True):
    """An artifact with the number of its files and symlinks, and the total size of its files."""

    artifact: str
    name: str
    component: str
    target: str
    files: int
    symlinks: int
    bytes: int
    entries: tuple[EntrySummary, ...] | msgspec.UnsetType = msgspec.UNSET
    """The entries, which are set only on request."""


class CatalogSummary(msgspec.Struct, frozen=True):
    """The artifacts in a folder, and their totals."""

    directory: str
    artifacts: tuple[ArtifactSummary, ...]
    files: int
    symlinks: int
    bytes: int


def summarize(
    catalog: Catalog, *, components: Sequence[str] = (), targets: Sequence[str] = (), with_entries: bool = False
) -> CatalogSummary:
    """Summarize the artifacts with these components and targets, or all artifacts.

    A target includes its feature variants.
    """
    entries: defaultdict[ArtifactName, list[Entry]] = defaultdict(list)
    for entry in catalog.entries:
        entries[entry.artifact].append(entry)
    summaries = tuple(
        _summarize(name, entries[name], with_entries=with_entries)
        for name in catalog.artifacts
        if (not components or name.component in components)
        and (not targets or not {name.target, name.base_target}.isdisjoint(targets))
    )
    return CatalogSummary(
        catalog.root,
        summaries,
        sum(summary.files for summary in summaries),
        sum(summary.symlinks for summary in summaries),
        sum(summary.bytes for summary in summaries),
    )


def explain_absence(catalog: Catalog, *, components: Sequence[str] = (), targets: Sequence[str] = ()) -> str:
    """Return the reason why `summarize` found nothing, with the available components or targets."""
    component, target = " or ".join(map(repr, components)), " or ".join(map(repr, targets))
    known_components = {name.component for name in catalog.artifacts}
    known_targets = {name.target for name in catalog.artifacts}
    if components and known_components.isdisjoint(components):
        return f"no artifact has the component {component}; available: {', '.join(sorted(known_components))}"
    if targets and (known_targets | {name.base_target for name in catalog.artifacts}).isdisjoint(targets):
        return f"no artifact is for the target {target}; available: {', '.join(sorted(known_targets))}"
    return f"no artifact with the component {component} is for the target {target}"


def _summarize(name: ArtifactName, entries: Iterable[Entry], *, with_entries: bool) -> ArtifactSummary:
    parts = tuple(
        EntrySummary(entry.path, entry.kind, f"{entry.mode:o}", entry.source.size if entry.source else 0, entry.link)
        for entry in entries
    )
    return ArtifactSummary(
        str(name),
        name.name,
        name.component,
        name.target,
        sum(part.kind is FileKind.FILE for part in parts),
        sum(part.kind is FileKind.SYMLINK for part in parts),
        sum(part.bytes for part in parts),
        parts if with_entries else msgspec.UNSET,
    )
