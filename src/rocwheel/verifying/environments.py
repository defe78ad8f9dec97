"""The files of an installed environment compared with the RECORD of each distribution.

Packages that expand development files on demand keep RECORD true themselves: it lists the tree in place of the archive.
"""

from __future__ import annotations

import csv
import os
import stat
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.formats.record import RecordEntry, parse_record
from rocwheel.foundation.collecting import serialised
from rocwheel.foundation.files.regular_files import open_unchanged, read_regular
from rocwheel.installed.reading.read_file import begin_large
from rocwheel.verifying.hashing import hash_file, reading_faults
from rocwheel.verifying.records import row_fault
from rocwheel.verifying.values import Fault, Verified

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor

    from rocwheel.foundation.progress import Progress

__all__ = ["verify_environment"]


class _Row(msgspec.Struct, frozen=True):
    """A file that RECORD lists: where it is, and its row."""

    path: Path
    entry: RecordEntry


def verify_environment(path: Path, site: Path, executor: Executor, progress: Progress) -> Verified:
    """Compare the files of the environment at ``path`` whose packages are in ``site`` with RECORD.

    Bytecode is not compared, since interpreters write it, nor what is outside of the environment.
    """
    faults: list[Fault] = []
    rows: dict[Path, _Row] = {}
    unchecked = 0
    for info in sorted(site.glob("*.dist-info")):
        for row in _read_rows(info / "RECORD", site, faults):
            inside = _is_inside(row.path, _prefix(site)) and row.path.suffix != ".pyc"
            unchecked += not inside
            if inside:
                rows.setdefault(row.path, row)
    step = begin_large(progress, f"verifying {path}", sum(_size(row.path) for row in rows.values()))
    check = partial(_row_faults, advance=serialised(step.advance))
    size = 0
    for found, compared in executor.map(check, rows.values()):
        faults += found
        size += compared
    progress.end()
    return Verified(str(path), "environment", len(rows), size, tuple(faults), unchecked)


def _read_rows(record: Path, site: Path, faults: list[Fault]) -> Iterable[_Row]:
    with reading_faults(str(record), faults):
        try:
            entries = parse_record(read_regular(record))
        except csv.Error as e:
            faults.append(Fault("damaged", str(record), f"can't be read ({e})", "lines of CSV"))
            return
        own = os.path.relpath(record, site)
        for entry in entries:
            if entry.path != own and "\0" not in entry.path:
                yield _Row(Path(os.path.normpath(site / entry.path)), entry)


def _prefix(site: Path) -> Path:
    """Return what the files of an environment are below: scripts and data lie beside ``lib``."""
    whole = site.absolute()
    return whole.parents[2] if whole.name == "site-packages" and whole.parent.name.startswith("python") else whole


def _is_inside(path: Path, prefix: Path) -> bool:
    return Path(os.path.abspath(path)).is_relative_to(os.path.abspath(prefix))  # noqa: PTH100  # links stay


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _row_faults(row: _Row, advance: Callable[[int], object]) -> tuple[list[Fault], int]:
    """Return what is wrong with a file, and how many bytes were compared."""
    faults: list[Fault] = []
    place = str(row.path)
    with reading_faults(place, faults):
        status = row.path.stat()
        if not row.entry.hash:
            return (
                [],
                0,
            )  # a folder, a link, or what changes while it is used: RECORD says no more than that it is there
        if not stat.S_ISREG(status.st_mode):
            return [Fault("changed", place, "is not a file", "a file")], 0
        with open_unchanged(row.path) as file:
            if fault := row_fault(row.entry, place, status.st_size, partial(hash_file, file, advance=advance)):
                faults.append(fault)
        return faults, status.st_size
    return faults, 0
