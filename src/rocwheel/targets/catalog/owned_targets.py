"""The GPUs that people own and may ask packages for."""

from __future__ import annotations

from functools import lru_cache

from rocwheel.targets.catalog.catalog import load_catalog

__all__ = ["owned_targets"]


@lru_cache(maxsize=1)
def owned_targets() -> tuple[str, ...]:
    """Return the targets of GPUs that were sold and that somebody builds ROCm for, in the catalogue's order.

    A source has to name a product, and one of these has to have the target: AMD's matrices, TheRock's families,
    Gentoo's lists, or what a distribution or framework builds for. Left out are processors that only compilers know
    (such as gfx600, gfx940, gfx1310), and those that no ROCm package ever had code for (such as gfx703): nobody looks
    for a package for these.
    """
    catalog = load_catalog()
    built = {target for family in catalog.families for target in family.targets}
    built |= {target for matrix in catalog.matrices for target in matrix.targets}
    built |= {target for release in catalog.releases for target in (*release.official, *release.unofficial)}
    built |= {target for packager in catalog.packagers if packager.builds for target in packager.targets}
    return tuple(row.name for row in catalog.targets if row.products and row.name in built)
