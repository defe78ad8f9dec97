"""A catalogue whose device code is split off: host files without it, and artifacts of their own for each target.

What this makes is what TheRock's splitter leaves on disk, so that everything after it plans both alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.artifact import FileKind
from rocwheel.artifacts.catalog import Entry
from rocwheel.device.splitting.files import NamedFile
from rocwheel.device.splitting.plan import plan_split
from rocwheel.packages.preparing.prepared_catalog import PreparedCatalog
from rocwheel.packages.preparing.taken_files import by_path, replace_files, require_neutral, taken_files, warn_of_code
from rocwheel.packages.preparing.write_split import write_split

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rocwheel.artifacts.catalog import Catalog
    from rocwheel.device.splitting.files import SplitChoice, SplitPlan
    from rocwheel.device.splitting.write_archives import Workers
    from rocwheel.packages.preparing.write_split import SplitFiles
    from rocwheel.packages.recipe.recipe import Recipe

__all__ = ["split_catalog"]

_ARCHIVE_MODE = 0o644


def split_catalog(
    catalog: Catalog, recipe: Recipe, choice: SplitChoice, folder: Path, workers: Workers
) -> PreparedCatalog:
    """Split the files that go to packages with device packages, and write what becomes of them below ``folder``.

    Other files, such as those of the core package, keep their code, since no device package lies over them.
    Raises `InputError` for a catalogue of target families and as `plan_split` does, `ProblemsError` for several
    problems, and `OSError` when writing fails.
    """
    require_neutral(catalog)
    taken = taken_files(catalog, recipe)
    files = by_path(taken)
    named = [NamedFile(path, entry.source) for path, entry in files.items() if entry.source]
    plan = plan_split(named, choice, subject=catalog.root)
    made = write_split(plan, choice, folder, workers, subject=catalog.root)
    changed = {*(file.path for file in plan.host if file.library), *(file.path for file in plan.device)}
    changed.update(plan.left_out)
    split = replace_files(catalog, taken, changed, _new_entries(plan, files, made))
    remarks = {file.path: file.remark for file in plan.host if file.remark}
    return PreparedCatalog(split, warn_of_code(remarks))


def _new_entries(plan: SplitPlan, files: Mapping[str, Entry], made: SplitFiles) -> Iterator[Entry]:
    for file in plan.host:
        if file.library is None:
            continue
        entry = files[file.path]
        yield msgspec.structs.replace(entry, source=made.hosts[file.path])
        for archive in file.library.archives:
            artifact = msgspec.structs.replace(entry.artifact, target=archive.target)
            source = made.archives[archive.path]
            yield Entry(archive.path, FileKind.FILE, artifact, _ARCHIVE_MODE, source, stage=entry.stage)
    for kernels in plan.device:
        entry = files[kernels.path]
        yield msgspec.structs.replace(entry, artifact=msgspec.structs.replace(entry.artifact, target=kernels.target))
