"""Importing Debian packages as artifacts."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rocwheel.artifacts.importing.choose_artifact import Origin
from rocwheel.artifacts.importing.deb import Deb, DebControl, open_deb
from rocwheel.artifacts.importing.importer import Importer, SourceMember, importing
from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.counting import count, first_of
from rocwheel.foundation.errors import InputError, RocwheelError
from rocwheel.foundation.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rocwheel.artifacts.importing.report import ImportReport
    from rocwheel.artifacts.importing.table import ImportTable

__all__ = ["import_debs"]


def import_debs(
    paths: Sequence[Path],
    dest: Path,
    table: ImportTable,
    *,
    bundle_system: bool = False,
    progress: Progress = SILENT,
) -> ImportReport:
    """Turn packages into artifacts in the folder ``dest``, which must be new or empty.

    Packages of system libraries are taken only with ``bundle_system``. Raises `InputError` for packages that can't be
    read, `ProblemsError` for packages and files that the table does not know and for conflicts between them.
    """
    ordered = _checked(sorted(paths), table)
    with importing(table, dest) as importer:
        importer.version = _sdk_version([control for _, control in ordered], table)
        progress.begin(f"unpacking {count(len(ordered), 'package')}", sum(path.stat().st_size for path, _ in ordered))
        for path, control in ordered:
            rule = importer.rules.rule_of_package(control.package)
            if rule and rule.system and not bundle_system:
                importer.left_out.append(control.package)
                progress.advance(path.stat().st_size)
                continue
            with open_deb(path, progress=progress) as deb:
                _add_members(importer, deb)
        progress.end()
        return importer.finish(first_of([str(path) for path, _ in ordered]))


def _checked(paths: Iterable[Path], table: ImportTable) -> list[tuple[Path, DebControl]]:
    """Read the control fields of all packages first, so that mistakes are reported before the long work."""
    read: list[tuple[Path, DebControl]] = []
    problems: list[RocwheelError] = []
    known: dict[str, Path] = {}
    for path in paths:
        try:
            with open_deb(path) as deb:
                control = deb.control
        except InputError as e:
            problems.append(e)
            continue
        if problem := _package_problem(path, control, table, known):
            problems.append(problem)
        known.setdefault(control.package, path)
        read.append((path, control))
    raise_all("the packages", problems)
    return read


def _package_problem(
    path: Path, control: DebControl, table: ImportTable, known: dict[str, Path]
) -> RocwheelError | None:
    if control.package in known:
        return InputError(path, f"the package {control.package} was given already, as {known[control.package]}")
    if not any(fnmatchcase(control.package, pattern) for rule in table.artifact for pattern in rule.packages):
        remedy = "Leave it out, or add it to an [[artifact]] of the table (--table)."
        return InputError(path, f"the table has no artifact for the package {control.package}", remedy=remedy)
    return None


def _sdk_version(controls: Iterable[DebControl], table: ImportTable) -> str:
    versions = {control.package: control.upstream_version for control in controls}
    for pattern in table.version_from:
        for package, version in sorted(versions.items()):
            if fnmatchcase(package, pattern):
                return version
    return ""


def _add_members(importer: Importer, deb: Deb) -> None:
    for member in deb.members():
        importer.add(
            SourceMember(
                origin=Origin(member.path, str(deb.path), deb.control.package),
                kind=member.kind,
                mode=member.mode,
                link=member.link or "",
                same_as=member.same_as or "",
                content=member.content,
            )
        )
