"""A catalogue whose libraries keep the code of a common set, with a whole library for each target beside them.

No runtime has to know of this: which of the libraries is loaded is chosen by the packages' own Python code.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.artifact import FileKind
from rocwheel.artifacts.catalog import Entry
from rocwheel.core.workers import convert_all
from rocwheel.device.splitting.files import NamedFile
from rocwheel.device.splitting.overlays.files import OverlayChoice
from rocwheel.device.splitting.overlays.plan import plan_overlays
from rocwheel.device.splitting.overlays.write import Writing, write_library
from rocwheel.packages.layout.facts import read_facts
from rocwheel.packages.preparing.prepared_catalog import PreparedCatalog
from rocwheel.packages.preparing.taken_files import by_path, replace_files, require_neutral, taken_files, warn_of_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rocwheel.artifacts.catalog import Catalog
    from rocwheel.device.splitting.overlays.files import OverlaidLibrary, OverlayPlan
    from rocwheel.device.splitting.write_archives import Workers
    from rocwheel.packages.recipe.recipe import Recipe

__all__ = ["overlay_catalog"]


def overlay_catalog(catalog: Catalog, recipe: Recipe, how: Writing, folder: Path, workers: Workers) -> PreparedCatalog:
    """Take the libraries apart that go to packages with device packages; what is made lies below ``folder``.

    A library stays whole unless a file of the catalogue needs it by its SONAME, or the recipe makes it public: only
    then it is loaded in a way that allows a choice. ``how.common`` may be empty for the default.
    Raises `InputError` for a catalogue of target families and as `plan_overlays` does, `ProblemsError` for several
    problems, and `OSError` when writing fails.
    """
    require_neutral(catalog)
    taken = taken_files(catalog, recipe)
    files = by_path(taken)
    named = [NamedFile(path, entry.source) for path, entry in files.items() if entry.source]
    choice = OverlayChoice(how.common, _is_loaded_by_soname(catalog, recipe, workers))
    plan = plan_overlays(named, choice, subject=catalog.root)
    new = _write(plan, files, msgspec.structs.replace(how, common=plan.common), folder, workers, catalog.root)
    changed = {*(library.path for library in plan.libraries), *(file.path for file in plan.device)}
    made = replace_files(catalog, taken, changed, [*new, *_moved(plan, files)])
    return PreparedCatalog(made, warn_of_code(plan.remarks))


def _is_loaded_by_soname(catalog: Catalog, recipe: Recipe, workers: Workers) -> Callable[[str], bool]:
    facts = read_facts(catalog, workers.executor)
    needed = {name for elf in facts.elves.values() for name in elf.needed}
    public = [library.pattern for library in recipe.libraries.values()]
    return lambda soname: soname in needed or any(fnmatchcase(soname, pattern) for pattern in public)


def _write(
    plan: OverlayPlan, files: Mapping[str, Entry], how: Writing, folder: Path, workers: Workers, subject: str
) -> Sequence[Entry]:
    workers.progress.begin("choosing device code", sum(library.content.size for library in plan.libraries))
    make = partial(_entries, files=files, how=how, folder=folder, workers=workers)
    try:
        made = convert_all(subject, make, plan.libraries)
    finally:
        workers.progress.end()
    return [entry for entries in made for entry in entries]


def _entries(
    library: OverlaidLibrary, *, files: Mapping[str, Entry], how: Writing, folder: Path, workers: Workers
) -> list[Entry]:
    entry = files[library.path]
    host, overlays = write_library(library, folder, how)
    workers.progress.advance(library.content.size)
    made = [
        Entry(
            library.path_for(target),
            FileKind.FILE,
            msgspec.structs.replace(entry.artifact, target=target),
            entry.mode,
            source,
            stage=entry.stage,
        )
        for target, source in overlays.items()
    ]
    return [msgspec.structs.replace(entry, source=host), *made]


def _moved(plan: OverlayPlan, files: Mapping[str, Entry]) -> Iterator[Entry]:
    for kernels in plan.device:
        entry = files[kernels.path]
        yield msgspec.structs.replace(entry, artifact=msgspec.structs.replace(entry.artifact, target=kernels.target))
