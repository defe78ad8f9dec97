"""The GPUs that the page of an index offers to choose among."""

from __future__ import annotations

from rocwheel.distributions.front_page.content import Gpu
from rocwheel.targets.catalog.catalog import load_catalog
from rocwheel.targets.catalog.families import families_of

__all__ = ["gpu_names"]


def gpu_names() -> tuple[Gpu, ...]:
    """Return all targets of the catalogue, in its order."""
    catalog = load_catalog()
    return tuple(
        Gpu(row.name, row.kind, row.products, (*catalog.generics_of(row.name), *families_of(row.name)[1:]))
        for row in catalog.targets
    )
