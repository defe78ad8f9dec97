"""A catalogue in which prepared files take the place of the originals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.catalog import Catalog, Entry
from rocwheel.packages.plan import PlanWarning

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.artifacts.sdk_files import SdkManifest

__all__ = ["PreparedCatalog", "catalog_of"]


class PreparedCatalog(msgspec.Struct, frozen=True):
    """The catalogue to plan with, and what there is to report about how it was made."""

    catalog: Catalog
    warnings: tuple[PlanWarning, ...] = ()

    def then(self, later: PreparedCatalog) -> PreparedCatalog:
        """Return what ``later`` made of this catalogue, with the warnings of both."""
        return PreparedCatalog(later.catalog, self.warnings + later.warnings)


def catalog_of(old: Catalog, entries: Iterable[Entry], manifest: SdkManifest | None) -> Catalog:
    """Return the catalogue of all ``entries``, and of those artifacts of ``old`` that have none."""
    ordered = sorted(entries, key=lambda entry: (entry.path, entry.artifact))
    names = {*old.artifacts, *(entry.artifact for entry in ordered)}
    return Catalog(old.root, tuple(sorted(names)), tuple(ordered), manifest)
