"""Changes artifacts before a build is planned: splits off device code, retargets it, and compresses archives.

Splitting into archives produces the same files as TheRock's splitter, so planning treats both the same way. Separate,
complete libraries for each target need no runtime support, because the packages' own Python code chooses the library to
load.
"""

from __future__ import annotations

from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.artifact import FileKind
from rocwheel.artifacts.catalog import Catalog, Entry
from rocwheel.artifacts.sdk_files import SPLIT_FLAG
from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.archive import Scheme, read_archive
from rocwheel.binary.kpack.write import Storing, recompress_archive, unnamed_remark, would_change
from rocwheel.binary.pe.rewrite import SignedFileError
from rocwheel.build.file_facts import glance_platform, is_windows_name, read_facts
from rocwheel.build.placement import take_entries
from rocwheel.build.plan import PlanWarning
from rocwheel.build.planning.options import common_targets, compress_for, retarget_pairs
from rocwheel.build.recipe import recipe_for
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, first_of
from rocwheel.core.patch import write_patch
from rocwheel.core.reading import FileRange
from rocwheel.core.scratch import no_room, scratch_folder, temporary_folder
from rocwheel.core.workers import attempt_all, map_collecting, raise_all, worker_count
from rocwheel.core.writing import atomic_file
from rocwheel.device.edit_file import is_signed_image
from rocwheel.device.retarget_tree import RetargetOrder, retarget_files
from rocwheel.device.split.overlays import OverlayChoice, Writing, plan_overlays, write_library
from rocwheel.device.split.splitting import NamedFile, SplitChoice, plan_split, write_archives
from rocwheel.targets.catalog import is_family
from rocwheel.targets.compatibility import GENERIC
from rocwheel.wheels.content import FileContent, digest_content

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from rocwheel.artifacts.sdk_files import SdkManifest
    from rocwheel.build.planning.options import PlanOptions
    from rocwheel.build.recipe import Recipe
    from rocwheel.core.errors import RocwheelError
    from rocwheel.core.writing import AtomicFile
    from rocwheel.device.retarget import RetargetedTree
    from rocwheel.device.split.overlays import OverlaidLibrary, OverlayPlan
    from rocwheel.device.split.splitting import HostFile, SplitPlan, Workers
    from rocwheel.device.split.units import PlannedArchive


class PreparedCatalog(msgspec.Struct, frozen=True):
    """The catalog to plan with, and warnings from its preparation."""

    catalog: Catalog
    warnings: tuple[PlanWarning, ...] = ()

    def then(self, later: PreparedCatalog) -> PreparedCatalog:
        """Return ``later``, which was prepared from this catalog, with the warnings from both catalogs."""
        return PreparedCatalog(later.catalog, self.warnings + later.warnings)


@contextmanager
def prepared_catalog(
    catalog: Catalog, recipe: Recipe, options: PlanOptions, workers: Workers
) -> Iterator[PreparedCatalog]:
    """Yield the catalog to plan with. It is the same catalog unless ``options`` request changes to device code.

    New files are in the folder for temporary files, and are removed when the block ends. If the build is killed, the
    next build removes them. Raises the same errors as `split_catalog`, `overlay_catalog`, `retarget_catalog`, and
    `compress_archives`, and `WorkError` if writing fails.
    """
    if options.split_device == "none" and options.device_code == "keep" and not options.retarget:
        yield PreparedCatalog(catalog)
        return
    recipe = recipe_for(recipe, glance_platform(catalog.entries, options.platform))
    with scratch_folder(Path(temporary_folder(), "rocwheel-build")) as folder:
        try:
            prepared = _prepare(catalog, recipe, options, folder, workers)
        except OSError as e:
            raise no_room(catalog.root, "the prepared device code", e) from e
        yield prepared


def _prepare(catalog: Catalog, recipe: Recipe, options: PlanOptions, folder: Path, workers: Workers) -> PreparedCatalog:
    """Prepare the catalog. Archives are split off first, because they have room for more code objects.

    Libraries are split last.
    """
    prepared = PreparedCatalog(catalog)
    if options.split_device == "kpack":
        prepared = split_catalog(catalog, recipe, SplitChoice(), folder / "split", workers)
    if options.retarget:
        release = compress_for(prepared.catalog, options)
        storage = Storage(compress=release is not None, rocm=release or options.rocm or "")
        jobs = worker_count(workers.jobs)
        order = RetargetOrder(pairs=retarget_pairs(options), storage=storage, jobs=jobs, progress=workers.progress)
        prepared = prepared.then(retarget_catalog(prepared.catalog, order, folder / "retargeted"))
    if options.split_device == "overlay":
        how = Writing(common_targets(options), compress_for(catalog, options) or "", worker_count(workers.jobs))
        prepared = prepared.then(overlay_catalog(prepared.catalog, recipe, how, folder / "overlays", workers))
    if options.device_code != "keep":
        prepared = prepared.then(compress_archives(prepared.catalog, folder / "compressed", workers))
        warned_of = {warning.subject for warning in prepared.warnings}
        signed = (warning for warning in warn_of_signed_code(prepared.catalog) if warning.subject not in warned_of)
        prepared = prepared.then(PreparedCatalog(prepared.catalog, tuple(signed)))
    return prepared


def split_catalog(
    catalog: Catalog, recipe: Recipe, choice: SplitChoice, folder: Path, workers: Workers
) -> PreparedCatalog:
    """Split the files in packages that have device packages, and write the results below ``folder``.

    Other files, such as files in the core package, retain their code, because no device package covers them. Raises
    `InputError` for a catalog with target families and for the same reasons as `plan_split`, `ProblemsError` for
    several problems, and `OSError` if writing fails.
    """
    taken, files, named = _taken_files(catalog, recipe)
    plan = plan_split(named, choice, subject=catalog.root)
    problems: list[RocwheelError] = []
    libraries = [file for file, _ in plan.libraries]
    workers.progress.begin("splitting device code", plan.code_size)
    try:
        made = attempt_all(partial(_write_host, choice=choice, folder=folder, workers=workers), libraries, problems)
    finally:
        workers.progress.end()
    raise_all(catalog.root, problems)
    hosts = {file.path: host for file, host in zip(libraries, made, strict=True)}
    changed = {*(file.path for file in plan.host if file.library), *(file.path for file in plan.device)}
    changed.update(plan.left_out)
    new = [*_split_entries(plan, files, hosts, folder), *_kernel_entries(plan, files)]
    remarks = {file.path: file.remark for file in plan.host if file.remark}
    return _prepared(_replace_files(catalog, taken, changed, new), remarks)


def _write_host(file: HostFile, *, choice: SplitChoice, folder: Path, workers: Workers) -> FileRange:
    assert file.patch is not None
    path = folder / "host" / file.path
    path.parent.mkdir(parents=True, exist_ok=True)

    def open_archive(archive: PlannedArchive) -> AbstractContextManager[AtomicFile]:
        return atomic_file(folder / archive.path)

    with file.content.view() as data, path.open("xb") as host:
        write_patch(host, data, file.patch)
        write_archives(file, choice, open_archive, workers)
    return FileRange.whole(path)


_ARCHIVE_MODE = 0o644


def _split_entries(
    plan: SplitPlan, files: Mapping[str, Entry], hosts: Mapping[str, FileRange], folder: Path
) -> Iterator[Entry]:
    for file in plan.host:
        if file.library is None:
            continue
        entry = files[file.path]
        yield msgspec.structs.replace(entry, source=hosts[file.path])
        for archive in file.library.archives:
            artifact = msgspec.structs.replace(entry.artifact, target=archive.target)
            source = FileRange.whole(folder / archive.path)
            yield Entry(archive.path, FileKind.FILE, artifact, _ARCHIVE_MODE, source, stage=entry.stage)


def overlay_catalog(catalog: Catalog, recipe: Recipe, how: Writing, folder: Path, workers: Workers) -> PreparedCatalog:
    """Split libraries in packages that have device packages into libraries per target, and write them below ``folder``.

    A library is split only if a file of the catalog needs it by its SONAME or the recipe makes it public. Only then can
    another library be chosen at load time. If ``how.common`` is empty, the default applies. Raises `InputError` for a
    catalog with target families and for the same reasons as `plan_overlays`, `ProblemsError` for several problems, and
    `OSError` if writing fails.
    """
    taken, files, named = _taken_files(catalog, recipe)
    facts = read_facts(catalog, workers.executor)
    needed = {name for elf in facts.elves.values() for name in elf.needed}
    public = [library.pattern for library in recipe.libraries.values()]
    choice = OverlayChoice(
        how.common, lambda soname: soname in needed or any(fnmatchcase(soname, pattern) for pattern in public)
    )
    plan = plan_overlays(named, choice, subject=catalog.root)
    new = _write_overlays(plan, files, msgspec.structs.replace(how, common=plan.common), folder, workers, catalog.root)
    changed = {*(library.path for library in plan.libraries), *(file.path for file in plan.device)}
    made = _replace_files(catalog, taken, changed, [*new, *_kernel_entries(plan, files)])
    return _prepared(made, plan.remarks)


def _write_overlays(
    plan: OverlayPlan, files: Mapping[str, Entry], how: Writing, folder: Path, workers: Workers, subject: str
) -> Sequence[Entry]:
    workers.progress.begin("choosing device code", sum(library.content.size for library in plan.libraries))
    make = partial(_overlay_entries, files=files, how=how, folder=folder, workers=workers)
    try:
        made = map_collecting(subject, make, plan.libraries)
    finally:
        workers.progress.end()
    return [entry for entries in made for entry in entries]


def _overlay_entries(
    library: OverlaidLibrary, *, files: Mapping[str, Entry], how: Writing, folder: Path, workers: Workers
) -> list[Entry]:
    entry = files[library.path]
    host, overlays = write_library(library, folder, how)
    workers.progress.advance(library.content.size)
    made = [
        msgspec.structs.replace(
            entry,
            path=library.path_for(target),
            artifact=msgspec.structs.replace(entry.artifact, target=target),
            source=source,
        )
        for target, source in overlays.items()
    ]
    return [msgspec.structs.replace(entry, source=host), *made]


def _kernel_entries(plan: SplitPlan | OverlayPlan, files: Mapping[str, Entry]) -> Iterator[Entry]:
    for kernels in plan.device:
        entry = files[kernels.path]
        yield msgspec.structs.replace(entry, artifact=msgspec.structs.replace(entry.artifact, target=kernels.target))


_OPTION = "--split-device"


def _taken_files(catalog: Catalog, recipe: Recipe) -> tuple[list[Entry], dict[str, Entry], list[NamedFile]]:
    """Return the entries and the named files of packages that device packages cover, and the first entry at each path.

    Only artifacts for all GPUs are included. Raises `InputError` for a catalog with target families, because each
    family might have different files for all GPUs.
    """
    families = sorted({name.target for name in catalog.artifacts if is_family(name.target)})
    if families:
        raise InputError(
            _OPTION,
            f"{catalog.root} has artifacts for families, such as {families[0]}",
            expected="artifacts for all GPUs or for single targets",
            remedy="First, merge the families' artifacts with 'rocwheel artifacts merge'.",
        )
    overlaid = {package.overlay for package in recipe.packages.values() if package.overlay}
    takes = [take for key in sorted(overlaid) for take in recipe.packages[key].take]
    found: list[Entry] = []
    for name in catalog.artifacts:
        if name.target == GENERIC:
            tree = {entry.path: entry for entry in catalog.entries if entry.artifact == name}
            found += [entry for entry in take_entries(tree, takes).values() if entry.kind is FileKind.FILE]
    taken = sorted(found, key=lambda entry: (entry.path, entry.artifact))
    files = _by_path(taken)
    return taken, files, [NamedFile(path, entry.source) for path, entry in files.items() if entry.source]


def _by_path(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Return the first entry at each path. The ``entries`` are sorted."""
    found: dict[str, Entry] = {}
    for entry in entries:
        found.setdefault(entry.path, entry)
    return found


def _replace_files(catalog: Catalog, taken: Iterable[Entry], changed: Collection[str], new: Iterable[Entry]) -> Catalog:
    """Return the catalog with ``new`` entries instead of the entries in ``taken`` whose paths are in ``changed``.

    Identical copies in other artifacts are also removed. Different files at the same paths remain, and planning reports
    them.
    """
    files = _by_path(taken)
    entries = [entry for entry in taken if entry.path in changed]
    gone = {entry for entry in entries if entry == files[entry.path] or _are_equal(entry, files[entry.path])}
    kept = (entry for entry in catalog.entries if entry not in gone)
    manifest = catalog.manifest
    if manifest:  # the same flag as in an SDK that TheRock's splitter has split
        manifest = msgspec.structs.replace(manifest, flags={**manifest.flags, SPLIT_FLAG: True})
    return catalog_of(catalog, (*kept, *new), manifest)


def _are_equal(one: Entry, other: Entry) -> bool:
    contents = [FileContent(entry.source) for entry in (one, other) if entry.source]
    return len({digest_content(content) for content in contents}) == 1


def _prepared(catalog: Catalog, remarks: Mapping[str, str]) -> PreparedCatalog:
    """Return a catalog with a warning for each file that still contains its device code.

    ``remarks`` contains the reasons, keyed by path.
    """
    found, remedy = "keeps its device code for all GPUs: ", "You don't need to do anything."
    warnings = (PlanWarning("device-code-stays", path, found + why, remedy) for path, why in remarks.items())
    return PreparedCatalog(catalog, tuple(warnings))


def catalog_of(old: Catalog, entries: Iterable[Entry], manifest: SdkManifest | None) -> Catalog:
    """Return the catalog of all ``entries``. Artifacts of ``old`` without entries are preserved."""
    ordered = sorted(entries, key=lambda entry: (entry.path, entry.artifact))
    names = {*old.artifacts, *(entry.artifact for entry in ordered)}
    return Catalog(old.root, tuple(sorted(names)), tuple(ordered), manifest)


_STORING = Storing(Scheme.ZSTD)
_SUFFIX = ".kpack"
_Made = tuple[Entry, PlanWarning | None]


def compress_archives(catalog: Catalog, folder: Path, workers: Workers) -> PreparedCatalog:
    """Return the catalog with compressed archives instead of plain archives. The new archives are below ``folder``.

    Archives with compressed code objects stay unchanged. A warning reports each archive that lost code objects because
    they had no key. After all archives are read, raises `KpackError` for damaged archives and `OSError` if writing
    fails.
    """
    places = [place for place, entry in enumerate(catalog.entries) if _is_archive(entry)]
    sizes = sum(entry.source.size for place in places if (entry := catalog.entries[place]).source)
    workers.progress.begin("compressing archives", sizes)
    make = partial(_compressed, catalog, folder=folder, workers=workers)
    try:
        made = dict(zip(places, map_collecting(catalog.root, make, places), strict=True))
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
                warning = PlanWarning("unnamed-code", archive.name, remark, "You don't need to do anything.")
    workers.progress.advance(len(data))
    return entry, warning


def retarget_catalog(catalog: Catalog, order: RetargetOrder, folder: Path) -> PreparedCatalog:
    """Offer the code in all artifacts to more GPUs. New files are below ``folder``.

    A copy for another GPU goes to an artifact for that GPU if the original is in an artifact for its own GPU.
    Otherwise, the copy goes to the same artifact. Warns about code that can't be retargeted, with the reason, and about
    new targets with incomplete packages. Raises the same errors as `retarget_files`.
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
        for refusal in made.refused:
            found = f"can't be retargeted: {refusal.fault}"
            remedy = (
                refusal.remedy.replace("(--compress)", "(--device-code compress)") or "You don't need to do anything."
            )
            warnings.append(PlanWarning("not-retargeted", f"{name}: {refusal.source}", found, remedy))
        for agent, paths in made.lacking.items():
            lacking.setdefault(agent, []).extend(paths)
    for agent, lacked in lacking.items():
        places = f"{count(len(lacked), 'file')}: {first_of(lacked)}"
        found = f"leaves {agent} without code that its source target has, in {places}"
        remedy = f"Publish packages for {agent} only if no program needs this code."
        warnings.append(PlanWarning("incomplete-target", "--retarget", found, remedy, tuple(lacked)))
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


def warn_of_signed_code(catalog: Catalog) -> Iterator[PlanWarning]:
    """Yield a warning for each signed file with device code. Such a file isn't compressed, to keep its signature valid.

    Damaged files are ignored, because later steps read all inputs and report them.
    """
    for entry in catalog.entries:
        if is_windows_name(entry.path) and _has_signed_code(entry):
            error = SignedFileError(entry.path)
            found = f"keeps its device code unchanged: {error.found}"
            yield PlanWarning("device-code-stays", entry.path, found, error.remedy)


def _has_signed_code(entry: Entry) -> bool:
    if entry.source is None:
        return False
    try:
        with entry.source.view() as data:
            return is_signed_image(data, name=entry.path) and bool(device_targets(data, name=entry.path))
    except InputError:
        return False
