"""A catalogue whose device code is offered to more GPUs, in each artifact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.artifact import FileKind
from rocwheel.core.messages import count, first_of
from rocwheel.device.retargeting.tree import retarget_files
from rocwheel.packages.plan import PlanWarning
from rocwheel.packages.preparing.prepared_catalog import PreparedCatalog, catalog_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rocwheel.artifacts.artifact import ArtifactName
    from rocwheel.artifacts.catalog import Catalog, Entry
    from rocwheel.core.errors import InputError
    from rocwheel.device.retargeting.relabelled import AddedFile, RetargetedTree
    from rocwheel.device.retargeting.tree import RetargetOrder

__all__ = ["retarget_catalog"]


def retarget_catalog(catalog: Catalog, order: RetargetOrder, folder: Path) -> PreparedCatalog:
    """Offer the code of all artifacts to more GPUs; what is made lies below ``folder``.

    A copy for another GPU goes to an artifact for it if its origin is in one for its own, else to the same artifact.
    What can't be offered is warned of with the reason, and so are new targets whose packages have gaps. Raises what
    `retarget_files` raises.
    """
    taken = {entry.path for entry in catalog.entries}
    entries: list[Entry] = []
    warnings: list[PlanWarning] = []
    lacking: dict[str, list[str]] = {}
    for name in catalog.artifacts:
        own = {entry.path: entry for entry in catalog.entries if entry.artifact == name}
        files = {path: entry.source for path, entry in own.items() if entry.kind is FileKind.FILE and entry.source}
        made = retarget_files(files, order, folder / str(name), taken=taken)
        entries += _entries(own, made)
        warnings += (_warn(name, refusal) for refusal in made.refused)
        for agent, paths in made.lacking.items():
            lacking.setdefault(agent, []).extend(paths)
    warnings += (_warn_of_gaps(agent, paths) for agent, paths in lacking.items())
    return PreparedCatalog(catalog_of(catalog, entries, catalog.manifest), tuple(warnings))


def _entries(own: dict[str, Entry], made: RetargetedTree) -> Iterator[Entry]:
    for path, entry in own.items():
        yield msgspec.structs.replace(entry, source=made.edited.get(path, entry.source))
    for added in made.added:
        origin = own[added.origin]
        artifact = _artifact(origin.artifact, added)
        yield msgspec.structs.replace(origin, path=added.path, artifact=artifact, source=added.content)


def _artifact(name: ArtifactName, added: AddedFile) -> ArtifactName:
    is_for_target = name.base_target == added.processor
    return msgspec.structs.replace(name, target=added.agent) if is_for_target else name


def _warn_of_gaps(agent: str, paths: Sequence[str]) -> PlanWarning:
    places = first_of(list(paths))
    found = f"leaves {agent} without code that its origin has, in {count(len(paths), 'place')}: {places}"
    remedy = f"Publish packages for {agent} only if nothing there needs it."
    return PlanWarning("incomplete-target", "--retarget", found, remedy, tuple(paths))


def _warn(name: ArtifactName, refusal: InputError) -> PlanWarning:
    expected = f"; expected {refusal.expected}" if refusal.expected else ""
    found = f"offers no code to more GPUs: {refusal.found}{expected}"
    remedy = refusal.remedy.replace("(--compress)", "(--device-code compress)") or "Nothing needs to be done."
    return PlanWarning("not-retargeted", f"{name}: {refusal.source}", found, remedy)
