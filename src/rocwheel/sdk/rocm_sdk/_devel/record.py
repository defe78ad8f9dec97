"""Notes expanded files in RECORD: https://packaging.python.org/specifications/recording-installed-packages/."""

from __future__ import annotations

import csv
import re
import stat

from .._packages import describe_package

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from .place import DevelPlace

__all__ = ["archive_identity", "record_files", "record_folders"]

SCRATCH = "_record.scratch"
"""A file of rocm-sdk-devel, so that RECORD lists it: the new RECORD is written under this name, then renamed."""


def record_folders(place: DevelPlace) -> None:
    """Note the folders of the tree and of the tree in the making, before either exists.

    pip and uv remove a folder that RECORD lists with all its content, also links that lead nowhere.
    """
    _replace(place, [place.root.name, place.partial.name])


def record_files(place: DevelPlace, paths: list[str]) -> None:
    """Note the files of the tree, by paths relative to site-packages, in place of those noted before."""
    _replace(place, [place.root.name, place.partial.name, *sorted(paths)])


def archive_identity(place: DevelPlace, archive: Path) -> str:
    """Return what identifies this archive: its hash in RECORD, else its size."""
    record = _find_record(place)
    name = archive.relative_to(place.site).as_posix()
    rows = _read(record) if record else []
    return next((row[1] for row in rows if row[0] == name and row[1:2] != [""]), f"size={archive.stat().st_size}")


def _find_record(place: DevelPlace) -> Path | None:
    """Return RECORD, None when the wheel was merely unpacked; then there is nothing to note."""
    package = describe_package("devel")
    own = _normalize(package.dist) if package else ""
    records = sorted(place.site.glob("*.dist-info/RECORD"))
    return next((path for path in records if _normalize(path.parent.name.partition("-")[0]) == own), None)


def _normalize(name: str) -> str:
    """Return a distribution's name in the one form that all its spellings share."""
    return re.sub("[-_.]+", "-", name).lower()


def _read(record: Path) -> list[list[str]]:
    with record.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.reader(file) if row]


def _replace(place: DevelPlace, additions: list[str]) -> None:
    record = _find_record(place)
    if record is None:
        return
    ours = (place.root.name, place.partial.name)
    rows = [row for row in _read(record) if row[0].partition("/")[0] not in ours]
    scratch = place.package / SCRATCH
    scratch.unlink(missing_ok=True)
    with scratch.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([*rows, *([path, "", ""] for path in additions)])
    scratch.chmod(stat.S_IMODE(record.stat().st_mode))
    scratch.replace(record)
