"""Artifacts changed before a build is planned, such as by splitting, in a folder that is removed after the build."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.binary.bundles.storage import Storage
from rocwheel.core.scratch import no_room, scratch_folder, temporary_folder
from rocwheel.core.workers import worker_count
from rocwheel.device.retargeting.tree import RetargetOrder
from rocwheel.device.splitting.files import SplitChoice
from rocwheel.device.splitting.overlays.write import Writing
from rocwheel.packages.layout.tree_platform import glance_platform
from rocwheel.packages.planning.options import common_targets, compress_for, retarget_pairs
from rocwheel.packages.preparing.compress_archives import compress_archives
from rocwheel.packages.preparing.overlay_catalog import overlay_catalog
from rocwheel.packages.preparing.prepared_catalog import PreparedCatalog
from rocwheel.packages.preparing.retarget_catalog import retarget_catalog
from rocwheel.packages.preparing.signed_code import warn_of_signed_code
from rocwheel.packages.preparing.split_catalog import split_catalog
from rocwheel.packages.recipe.for_platform import recipe_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.artifacts.catalog import Catalog
    from rocwheel.device.splitting.write_archives import Workers
    from rocwheel.packages.planning.options import PlanOptions
    from rocwheel.packages.recipe.recipe import Recipe

__all__ = ["prepared_catalog"]


@contextmanager
def prepared_catalog(
    catalog: Catalog, recipe: Recipe, options: PlanOptions, workers: Workers
) -> Iterator[PreparedCatalog]:
    """Yield the catalogue to plan with: the same one unless ``options`` ask for other device code.

    What is made lies in the folder for temporary files and goes with the block; the next run removes what a killed one
    left. Raises what `split_catalog`, `overlay_catalog`, `retarget_catalog` and `compress_archives` raise, and
    `WorkError` when writing fails.
    """
    if options.split_device == "none" and options.device_code == "keep" and not options.retarget:
        yield PreparedCatalog(catalog)
        return
    recipe = recipe_for(recipe, glance_platform(catalog.entries, options.platform))
    with scratch_folder(Path(temporary_folder(), "rocwheel-build")) as folder:
        try:
            prepared = _prepare(catalog, recipe, options, folder, workers)
        except OSError as e:
            raise no_room(catalog.root, "the device code that is made of it", e) from e
        yield prepared


def _prepare(catalog: Catalog, recipe: Recipe, options: PlanOptions, folder: Path, workers: Workers) -> PreparedCatalog:
    """Split into archives first, which have room for more code objects; libraries for each target come last."""
    prepared = PreparedCatalog(catalog)
    if options.split_device == "kpack":
        prepared = split_catalog(catalog, recipe, SplitChoice(), folder / "split", workers)
    if options.retarget:
        order = _retarget_order(prepared.catalog, options, workers)
        prepared = prepared.then(retarget_catalog(prepared.catalog, order, folder / "retargeted"))
    if options.split_device == "overlay":
        how = Writing(common_targets(options), compress_for(catalog, options) or "", worker_count(workers.jobs))
        prepared = prepared.then(overlay_catalog(prepared.catalog, recipe, how, folder / "overlays", workers))
    if options.device_code != "keep":
        prepared = prepared.then(compress_archives(prepared.catalog, folder / "compressed", workers))
        told = {warning.subject for warning in prepared.warnings}
        signed = (warning for warning in warn_of_signed_code(prepared.catalog) if warning.subject not in told)
        prepared = prepared.then(PreparedCatalog(prepared.catalog, tuple(signed)))
    return prepared


def _retarget_order(catalog: Catalog, options: PlanOptions, workers: Workers) -> RetargetOrder:
    release = compress_for(catalog, options)
    storage = Storage(compress=release is not None, rocm=release or options.rocm or "")
    jobs = worker_count(workers.jobs)
    return RetargetOrder(pairs=retarget_pairs(options), storage=storage, jobs=jobs, progress=workers.progress)
