"""A catalogue whose device code is split off: host files without it, and artifacts of their own for each target.

What this makes is what TheRock's splitter leaves on disk, so that everything after it plans both alike.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.catalog import Entry, FileKind
from rocwheel.artifacts.model.names import GENERIC
from rocwheel.artifacts.model.sdk_manifest import SPLIT_FLAG
from rocwheel.device.splitting.files import NamedFile
from rocwheel.device.splitting.plan import plan_split
from rocwheel.distributions.content.content import FileContent
from rocwheel.distributions.content.digest import digest_content
from rocwheel.foundation.errors import InputError
from rocwheel.packages.layout.selection import take_entries
from rocwheel.packages.plan import PlanWarning
from rocwheel.packages.preparing.prepared_catalog import PreparedCatalog, catalog_of
from rocwheel.packages.preparing.write_split import write_split
from rocwheel.targets.catalog.families import is_family

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from rocwheel.artifacts.catalog import Catalog
    from rocwheel.artifacts.model.sdk_manifest import SdkManifest
    from rocwheel.device.splitting.files import HostFile, SplitChoice, SplitPlan
    from rocwheel.device.splitting.write_archives import Workers
    from rocwheel.packages.preparing.write_split import SplitFiles
    from rocwheel.packages.recipe.recipe import Recipe

__all__ = ["split_catalog"]

_OPTION = "--split-device"
_READER = "librocm_kpack.so"
_ARCHIVE_MODE = 0o644


def split_catalog(
    catalog: Catalog, recipe: Recipe, choice: SplitChoice, folder: Path, workers: Workers
) -> PreparedCatalog:
    """Split the files that go to packages with device packages, and write what becomes of them below ``folder``.

    Other files, such as those of the core package, keep their code, since no device package lies over them.
    Raises `InputError` for a catalogue of target families and as `plan_split` does, `ProblemsError` for several
    problems, and `OSError` when writing fails.
    """
    _require_neutral(catalog)
    taken = _taken(catalog, recipe)
    files = {entry.path: entry for entry in reversed(taken)}
    named = [NamedFile(path, entry.source) for path, entry in files.items() if entry.source]
    plan = plan_split(named, choice, subject=catalog.root)
    made = write_split(plan, choice, folder, workers, subject=catalog.root)
    gone = _replaced(plan, files, taken)
    kept = (entry for entry in catalog.entries if entry not in gone)
    split = catalog_of(catalog, (*kept, *_new_entries(plan, files, made)), _flagged(catalog.manifest))
    return PreparedCatalog(split, (*_check_runtime(catalog, plan), *(_warn(file) for file in plan.host if file.remark)))


def _require_neutral(catalog: Catalog) -> None:
    families = sorted({name.target for name in catalog.artifacts if is_family(name.target)})
    if families:
        raise InputError(
            _OPTION,
            f"{catalog.root} has artifacts for families, such as {families[0]}",
            expected="artifacts for all GPUs, and for single targets",
            remedy="Unite those of the families first: rocwheel artifacts merge.",
        )


def _taken(catalog: Catalog, recipe: Recipe) -> list[Entry]:
    """Return the files for all GPUs of those packages that device packages lie over."""
    overlaid = {package.overlay for package in recipe.packages.values() if package.overlay}
    takes = [take for key in sorted(overlaid) for take in recipe.packages[key].take]
    found: list[Entry] = []
    for name in catalog.artifacts:
        if name.target == GENERIC:
            tree = {entry.path: entry for entry in catalog.entries if entry.artifact == name}
            found += [entry for entry in take_entries(tree, takes).values() if entry.kind is FileKind.FILE]
    return sorted(found, key=lambda entry: (entry.path, entry.artifact))


def _replaced(plan: SplitPlan, files: Mapping[str, Entry], taken: Iterable[Entry]) -> set[Entry]:
    """Return the entries in whose place others come: those that were split or moved, and their equal copies."""
    changed = {*(file.path for file in plan.host if file.library), *(file.path for file in plan.device)}
    changed.update(plan.left_out)
    entries = [entry for entry in taken if entry.path in changed]
    return {entry for entry in entries if entry == files[entry.path] or _are_equal(entry, files[entry.path])}


def _are_equal(one: Entry, other: Entry) -> bool:
    contents = [FileContent(entry.source) for entry in (one, other) if entry.source]
    return len({digest_content(content) for content in contents}) == 1


def _new_entries(plan: SplitPlan, files: Mapping[str, Entry], made: SplitFiles) -> Iterator[Entry]:
    for file in plan.host:
        if file.library is None:
            continue
        entry = files[file.path]
        yield msgspec.structs.replace(entry, source=made.hosts[file.path])
        for archive in file.library.archives:
            artifact = msgspec.structs.replace(entry.artifact, target=archive.target)
            yield Entry(archive.path, FileKind.FILE, artifact, _ARCHIVE_MODE, made.archives[archive.path])
    for kernels in plan.device:
        entry = files[kernels.path]
        yield msgspec.structs.replace(entry, artifact=msgspec.structs.replace(entry.artifact, target=kernels.target))


def _flagged(manifest: SdkManifest | None) -> SdkManifest | None:
    """Return the manifest of an SDK that TheRock's splitter would have split."""
    return manifest and msgspec.structs.replace(manifest, flags={**manifest.flags, SPLIT_FLAG: True})


def _check_runtime(catalog: Catalog, plan: SplitPlan) -> Iterator[PlanWarning]:
    """Yield a warning when libraries are split, but nothing that reads archives is among the artifacts."""
    has_reader = any(posixpath.basename(entry.path).startswith(_READER) for entry in catalog.entries)
    if not has_reader and any(file.library for file in plan.host):
        yield PlanWarning(
            "no-kpack-runtime",
            _OPTION,
            f"moves device code to archives, but there is no {_READER}, by which HIP's runtime reads them",
            "Split only what will run on a HIP runtime with kpack.",
        )


def _warn(file: HostFile) -> PlanWarning:
    return PlanWarning(
        "device-code-stays",
        file.path,
        f"keeps its device code for all GPUs: {file.remark}",
        "Nothing needs to be done.",
    )
