"""What a merge of shards found and made."""

from __future__ import annotations

import msgspec

__all__ = ["Difference", "MergeReport", "MergedArtifact", "MissingTarget"]


class MergedArtifact(msgspec.Struct, frozen=True):
    """One artifact of the merged set: its files and links, their bytes, and the shards they come from."""

    name: str
    files: int
    bytes: int
    shards: tuple[str, ...]


class Difference(msgspec.Struct, frozen=True):
    """A file for all GPUs that isn't the same in all shards, and what was done."""

    path: str
    shard: str
    """The shard that differs from the primary."""
    differs: str
    """In what: ``build id``, ``bytes``, ``absent`` and the like."""
    outcome: str


class MissingTarget(msgspec.Struct, frozen=True):
    """A target for which an artifact with device files has none, though its shard was built for it."""

    artifact: str
    """Empty for all artifacts of a shard that says it was built for the target."""
    target: str
    shards: tuple[str, ...]


class MergeReport(msgspec.Struct, frozen=True):
    """What a merge found and made; ``dest_dir`` is empty where nothing was to be written."""

    primary: str
    shards: tuple[str, ...]
    targets: tuple[str, ...]
    artifacts: tuple[MergedArtifact, ...]
    differences: tuple[Difference, ...]
    missing: tuple[MissingTarget, ...]
    unknown: tuple[str, ...]
    """Files named like kernel files that no row of the table knows: their artifact alone says what they are for."""
    dest_dir: str = ""
