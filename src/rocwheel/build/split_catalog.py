"""Catalogues whose device code is split off before planning: into archives, or whole libraries for each target.

Splitting into archives makes what TheRock's splitter leaves on disk, so that everything after it plans both alike.
Of whole libraries for each target no runtime has to know: the packages' own Python code chooses which is loaded.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.artifact import GENERIC, FileKind
from rocwheel.artifacts.catalog import Catalog, Entry
from rocwheel.artifacts.sdk_files import SPLIT_FLAG
from rocwheel.build.facts import read_facts
from rocwheel.build.placement import take_entries
from rocwheel.build.plan import PlanWarning
from rocwheel.core.errors import InputError
from rocwheel.core.patch import write_patch
from rocwheel.core.reading import FileRange
from rocwheel.core.workers import attempt_all, convert_all, raise_all
from rocwheel.core.writing import atomic_file
from rocwheel.device.split.archives import write_archives
from rocwheel.device.split.files import NamedFile, plan_split
from rocwheel.device.split.overlays import OverlayChoice, Writing, plan_overlays, write_library
from rocwheel.targets.catalog.families import is_family
from rocwheel.wheels.content import FileContent, digest_content

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from rocwheel.artifacts.sdk_files import SdkManifest
    from rocwheel.build.recipe import Recipe
    from rocwheel.core.errors import RocwheelError
    from rocwheel.core.writing import AtomicFile
    from rocwheel.device.split.archives import Workers
    from rocwheel.device.split.files import HostFile, SplitChoice, SplitPlan
    from rocwheel.device.split.overlays import OverlaidLibrary, OverlayPlan
    from rocwheel.device.split.units import PlannedArchive


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


_OPTION = "--split-device"


def _taken_files(catalog: Catalog, recipe: Recipe) -> tuple[list[Entry], dict[str, Entry], list[NamedFile]]:
    """Return the files for all GPUs of those packages that device packages lie over, and the first at each path.

    Raises `InputError` for a catalogue of target families, whose files for all GPUs differ.
    """
    families = sorted({name.target for name in catalog.artifacts if is_family(name.target)})
    if families:
        raise InputError(
            _OPTION,
            f"{catalog.root} has artifacts for families, such as {families[0]}",
            expected="artifacts for all GPUs, and for single targets",
            remedy="Unite those of the families first: rocwheel artifacts merge.",
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
    """Return the first of the sorted ``entries`` at each path."""
    found: dict[str, Entry] = {}
    for entry in entries:
        found.setdefault(entry.path, entry)
    return found


def _replace_files(catalog: Catalog, taken: Iterable[Entry], changed: Collection[str], new: Iterable[Entry]) -> Catalog:
    """Return the catalogue with ``new`` entries in the place of those of ``taken`` whose paths are ``changed``.

    Equal copies of these in other artifacts go, too; other files at their paths stay, and are reported when planning.
    """
    files = _by_path(taken)
    entries = [entry for entry in taken if entry.path in changed]
    gone = {entry for entry in entries if entry == files[entry.path] or _are_equal(entry, files[entry.path])}
    kept = (entry for entry in catalog.entries if entry not in gone)
    manifest = catalog.manifest
    if manifest:  # that of an SDK that TheRock's splitter would have split
        manifest = msgspec.structs.replace(manifest, flags={**manifest.flags, SPLIT_FLAG: True})
    return catalog_of(catalog, (*kept, *new), manifest)


def _prepared(catalog: Catalog, remarks: Mapping[str, str]) -> PreparedCatalog:
    """Return a catalogue with a warning for each file that keeps its device code, given by path with the reason."""
    found, remedy = "keeps its device code for all GPUs: ", "Nothing needs to be done."
    warnings = (PlanWarning("device-code-stays", path, found + why, remedy) for path, why in remarks.items())
    return PreparedCatalog(catalog, tuple(warnings))


def _are_equal(one: Entry, other: Entry) -> bool:
    contents = [FileContent(entry.source) for entry in (one, other) if entry.source]
    return len({digest_content(content) for content in contents}) == 1


def _write_split(
    plan: SplitPlan, choice: SplitChoice, folder: Path, workers: Workers, *, subject: str
) -> dict[str, FileRange]:
    """Write the host files and archives of ``plan`` below ``folder``; return the host files by path.

    Raises, for all libraries together and led by ``subject`` if they are several, what `write_archives` raises.
    """
    problems: list[RocwheelError] = []
    libraries = [file for file in plan.host if file.library is not None]
    workers.progress.begin("splitting device code", sum(file.library.code_size for file in libraries if file.library))
    try:
        made = attempt_all(partial(_write_host, choice=choice, folder=folder, workers=workers), libraries, problems)
    finally:
        workers.progress.end()
    raise_all(subject, problems)
    return {file.path: host for file, host in zip(libraries, made, strict=True)}


def _write_host(file: HostFile, *, choice: SplitChoice, folder: Path, workers: Workers) -> FileRange:
    assert file.library is not None
    assert file.patch is not None
    path = folder / "host" / file.path
    path.parent.mkdir(parents=True, exist_ok=True)

    def open_archive(archive: PlannedArchive) -> AbstractContextManager[AtomicFile]:
        return atomic_file(folder / archive.path)

    with file.content.view() as data, path.open("xb") as host:
        write_patch(host, data, file.patch)
        write_archives(data, file.library, choice, open_archive, workers)
    return FileRange.whole(path)


_ARCHIVE_MODE = 0o644


def split_catalog(
    catalog: Catalog, recipe: Recipe, choice: SplitChoice, folder: Path, workers: Workers
) -> PreparedCatalog:
    """Split the files that go to packages with device packages, and write what becomes of them below ``folder``.

    Other files, such as those of the core package, keep their code, since no device package lies over them.
    Raises `InputError` for a catalogue of target families and as `plan_split` does, `ProblemsError` for several
    problems, and `OSError` when writing fails.
    """
    taken, files, named = _taken_files(catalog, recipe)
    plan = plan_split(named, choice, subject=catalog.root)
    hosts = _write_split(plan, choice, folder, workers, subject=catalog.root)
    changed = {*(file.path for file in plan.host if file.library), *(file.path for file in plan.device)}
    changed.update(plan.left_out)
    new = [*_split_entries(plan, files, hosts, folder), *_kernel_entries(plan, files)]
    remarks = {file.path: file.remark for file in plan.host if file.remark}
    return _prepared(_replace_files(catalog, taken, changed, new), remarks)


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
    """Take the libraries apart that go to packages with device packages; what is made lies below ``folder``.

    A library stays whole unless a file of the catalogue needs it by its SONAME, or the recipe makes it public: only
    then it is loaded in a way that allows a choice. ``how.common`` may be empty for the default.
    Raises `InputError` for a catalogue of target families and as `plan_overlays` does, `ProblemsError` for several
    problems, and `OSError` when writing fails.
    """
    taken, files, named = _taken_files(catalog, recipe)
    choice = OverlayChoice(how.common, _is_loaded_by_soname(catalog, recipe, workers))
    plan = plan_overlays(named, choice, subject=catalog.root)
    new = _write_overlays(plan, files, msgspec.structs.replace(how, common=plan.common), folder, workers, catalog.root)
    changed = {*(library.path for library in plan.libraries), *(file.path for file in plan.device)}
    made = _replace_files(catalog, taken, changed, [*new, *_kernel_entries(plan, files)])
    return _prepared(made, plan.remarks)


def _is_loaded_by_soname(catalog: Catalog, recipe: Recipe, workers: Workers) -> Callable[[str], bool]:
    facts = read_facts(catalog, workers.executor)
    needed = {name for elf in facts.elves.values() for name in elf.needed}
    public = [library.pattern for library in recipe.libraries.values()]
    return lambda soname: soname in needed or any(fnmatchcase(soname, pattern) for pattern in public)


def _write_overlays(
    plan: OverlayPlan, files: Mapping[str, Entry], how: Writing, folder: Path, workers: Workers, subject: str
) -> Sequence[Entry]:
    workers.progress.begin("choosing device code", sum(library.content.size for library in plan.libraries))
    make = partial(_overlay_entries, files=files, how=how, folder=folder, workers=workers)
    try:
        made = convert_all(subject, make, plan.libraries)
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
