"""Artifacts changed before a build is planned, in a folder that is removed after the build."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.artifact import FileKind
from rocwheel.artifacts.catalog import Entry
from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.archive import Scheme, read_archive
from rocwheel.binary.kpack.write import Storing, recompress_archive, unnamed_remark, would_change
from rocwheel.binary.pe.rewrite import SignedFileError
from rocwheel.build.facts import glance_platform, is_windows_name
from rocwheel.build.plan import PlanWarning
from rocwheel.build.planning.options import common_targets, compress_for, retarget_pairs
from rocwheel.build.recipe import recipe_for
from rocwheel.build.split_catalog import PreparedCatalog, catalog_of, overlay_catalog, split_catalog
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, first_of
from rocwheel.core.reading import FileRange
from rocwheel.core.scratch import no_room, scratch_folder, temporary_folder
from rocwheel.core.workers import convert_all, worker_count
from rocwheel.core.writing import atomic_file
from rocwheel.device.edit_file import is_signed_image
from rocwheel.device.retarget_tree import RetargetOrder, retarget_files
from rocwheel.device.split.files import SplitChoice
from rocwheel.device.split.overlays import Writing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.artifacts.artifact import ArtifactName
    from rocwheel.artifacts.catalog import Catalog
    from rocwheel.build.planning.options import PlanOptions
    from rocwheel.build.recipe import Recipe
    from rocwheel.device.kernel_files import RetargetedTree
    from rocwheel.device.split.archives import Workers


_STORING = Storing(Scheme.ZSTD)
_SUFFIX = ".kpack"
_Made = tuple[Entry, PlanWarning | None]


def compress_archives(catalog: Catalog, folder: Path, workers: Workers) -> PreparedCatalog:
    """Return the catalogue with compressed archives, written below ``folder``, in the place of plain ones.

    Archives with compressed code objects stay as they are. A warning names those without the code objects that they had
    and no key named. Raises, for all archives together, `KpackError` for damaged ones; `OSError` when writing fails.
    """
    places = [place for place, entry in enumerate(catalog.entries) if _is_archive(entry)]
    sizes = sum(entry.source.size for place in places if (entry := catalog.entries[place]).source)
    workers.progress.begin("compressing archives", sizes)
    make = partial(_compressed, catalog, folder=folder, workers=workers)
    try:
        made = dict(zip(places, convert_all(catalog.root, make, places), strict=True))
    finally:
        workers.progress.end()
    entries = tuple(made[place][0] if place in made else entry for place, entry in enumerate(catalog.entries))
    warnings = tuple(warning for _, warning in made.values() if warning)
    return PreparedCatalog(msgspec.structs.replace(catalog, entries=entries), warnings)


def _is_archive(entry: Entry) -> bool:
    if entry.kind is not FileKind.FILE or entry.source is None or not entry.path.endswith(_SUFFIX):
        return False
    with entry.source.view() as data:
        return is_kpack(data)


def _compressed(catalog: Catalog, place: int, *, folder: Path, workers: Workers) -> _Made:
    entry, warning = catalog.entries[place], None
    assert entry.source is not None
    with entry.source.view() as data:
        archive = read_archive(data, name=f"{entry.artifact}: {entry.path}")
        if would_change(archive, _STORING):
            path = folder / f"{place}.kpack"
            with atomic_file(path) as file:
                recompress_archive(data, archive, file, _STORING, workers.executor)
            entry = msgspec.structs.replace(entry, source=FileRange.whole(path))
            if remark := unnamed_remark(archive):
                warning = PlanWarning("unnamed-code", archive.name, remark, "Nothing needs to be done.")
    workers.progress.advance(len(data))
    return entry, warning


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
        artifact = origin.artifact
        if artifact.base_target == added.processor:
            artifact = msgspec.structs.replace(artifact, target=added.agent)
        yield msgspec.structs.replace(origin, path=added.path, artifact=artifact, source=added.content)


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


def warn_of_signed_code(catalog: Catalog) -> Iterator[PlanWarning]:
    """Yield a warning for each signed file with device code, which is not compressed: that would void the signature.

    Damaged files are left to those who read all that a build takes.
    """
    for entry in catalog.entries:
        if is_windows_name(entry.path) and _has_signed_code(entry):
            error = SignedFileError(entry.path)
            found = f"keeps its device code as it is: {error.found}"
            yield PlanWarning("device-code-stays", entry.path, found, error.remedy)


def _has_signed_code(entry: Entry) -> bool:
    if entry.source is None:
        return False
    try:
        with entry.source.view() as data:
            return is_signed_image(data, name=entry.path) and bool(device_targets(data, name=entry.path))
    except InputError:
        return False


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
