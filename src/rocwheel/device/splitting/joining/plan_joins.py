"""The plan for joining all libraries among files of one root, such as a tree or the members of wheels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.wrappers import is_host_file
from rocwheel.binary.code_objects import parse_target_id
from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.archive import read_archive
from rocwheel.binary.kpack.markers import read_split_library
from rocwheel.core.errors import InputError
from rocwheel.core.workers import attempt_all, raise_all
from rocwheel.device.splitting.joining.check_indices import check_indices
from rocwheel.device.splitting.joining.find_code import ArchiveFile, archives_of
from rocwheel.device.splitting.joining.library import JoinPlan, plan_library_join
from rocwheel.targets.kernel_files.check import check_kernel_file
from rocwheel.targets.kernel_files.classify import classify_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.core.errors import RocwheelError
    from rocwheel.device.splitting.files import NamedFile

__all__ = ["Joins", "plan_joins", "read_archive_file"]


class Joins(msgspec.Struct, frozen=True):
    """The plan of each library by its path, and the archives whose code is all back in libraries then."""

    joins: dict[str, JoinPlan]
    used: frozenset[str]
    warnings: tuple[str, ...] = ()
    """Faults of archives that another tool has made; wrong indices are corrected if the right ones are known."""


def plan_joins(files: Sequence[NamedFile], *, subject: str, remedy: str) -> Joins:
    """Plan the joining of every split library among ``files`` with the archives among them.

    Raises, led by ``subject`` if they are several, `InputError` with ``remedy`` when there is no such library, and as
    `plan_library_join` and `read_archive` do.
    """
    problems: list[RocwheelError] = []
    archives = [file for found in attempt_all(read_archive_file, files, problems) for file in found]
    raise_all(subject, problems)
    joins: dict[str, JoinPlan] = {}
    names: set[str] = set()
    read: set[str] = set()
    warnings: list[str] = []

    def plan_file(file: NamedFile) -> None:
        with file.content.view() as data:
            library = read_split_library(data, name=file.name) if is_host_file(data) else None
        if library is not None:
            names.update(unit.marker.kernel_name for unit in library.units)
            read.update(found.path for unit in library.units for found in archives_of(file.path, unit, archives))
            check = check_indices(file.path, library, archives, name=file.name)
            warnings.extend(check.texts())
            joins[file.path] = plan_library_join(file.path, library, archives, renumbered=check.renumbered)

    attempt_all(plan_file, files, problems)
    if not joins and not problems:
        problems.append(InputError(subject, "no library whose code is in archives", remedy=remedy))
    raise_all(subject, problems)
    used = (f.path for f in archives if f.path in read and {entry.binary for entry in f.archive.entries} <= names)
    return Joins(joins, frozenset(used), tuple(warnings))


def read_archive_file(file: NamedFile) -> list[ArchiveFile]:
    """Return a file as an archive, none if it is something else.

    Raises `KpackError` for a damaged archive, `InputError` for one that lists something else than targets, or other
    targets than that in its name, and `ProblemsError` for several faults.
    """
    kernels = classify_path(file.path)
    with file.content.view() as data:
        if not is_kpack(data) and (kernels is None or kernels.rule != "kpack"):
            return []
        raise_all(file.name, check_kernel_file(data, file.path, name=file.name))
        archive = read_archive(data, name=file.name)
    for target in dict.fromkeys((*archive.targets, *(entry.target for entry in archive.entries))):
        parse_target_id(target, source=file.name)
    return [ArchiveFile(file.path, file.content, archive)]
