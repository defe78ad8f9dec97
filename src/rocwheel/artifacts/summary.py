"""How many files each artifact of a catalogue has, and how large they are."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.model.artifact import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.artifacts.catalog import Catalog, Entry
    from rocwheel.artifacts.model.names import ArtifactName

__all__ = ["ArtifactSummary", "CatalogSummary", "EntrySummary", "explain_absence", "summarise"]


class EntrySummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file, symlink or directory."""

    path: str
    kind: FileKind
    mode: str
    """Permission bits in octal, such as ``755``."""
    bytes: int = 0
    link: str | None = None


class ArtifactSummary(msgspec.Struct, frozen=True):
    """One artifact: how many files and symlinks, and the bytes of its files."""

    artifact: str
    name: str
    component: str
    target: str
    files: int
    symlinks: int
    bytes: int
    entries: tuple[EntrySummary, ...] | msgspec.UnsetType = msgspec.UNSET
    """Only when asked for."""


class CatalogSummary(msgspec.Struct, frozen=True):
    """The artifacts of a folder, and their totals."""

    directory: str
    artifacts: tuple[ArtifactSummary, ...]
    files: int
    symlinks: int
    bytes: int


def summarise(
    catalog: Catalog, *, component: str | None = None, target: str | None = None, with_entries: bool = False
) -> CatalogSummary:
    """Sum up the artifacts of one component or target, or of all; a target stands for its feature variants too."""
    entries: defaultdict[ArtifactName, list[Entry]] = defaultdict(list)
    for entry in catalog.entries:
        entries[entry.artifact].append(entry)
    summaries = tuple(
        _summarise(name, entries[name], with_entries=with_entries)
        for name in catalog.artifacts
        if component in {None, name.component} and target in {None, name.target, name.base_target}
    )
    return CatalogSummary(
        catalog.root,
        summaries,
        sum(summary.files for summary in summaries),
        sum(summary.symlinks for summary in summaries),
        sum(summary.bytes for summary in summaries),
    )


def explain_absence(catalog: Catalog, *, component: str | None = None, target: str | None = None) -> str:
    """Return why `summarise` found nothing: which components or targets there are instead."""
    components = {name.component for name in catalog.artifacts}
    targets = {name.target for name in catalog.artifacts}
    if component is not None and component not in components:
        return f"no artifact has the component {component!r}; there are {', '.join(sorted(components))}"
    if target is not None and target not in targets | {name.base_target for name in catalog.artifacts}:
        return f"no artifact is for the target {target!r}; there are {', '.join(sorted(targets))}"
    return f"no artifact of the component {component!r} is for the target {target!r}"


def _summarise(name: ArtifactName, entries: Iterable[Entry], *, with_entries: bool) -> ArtifactSummary:
    parts = tuple(map(_summarise_entry, entries))
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


def _summarise_entry(entry: Entry) -> EntrySummary:
    return EntrySummary(entry.path, entry.kind, f"{entry.mode:o}", entry.source.size if entry.source else 0, entry.link)
