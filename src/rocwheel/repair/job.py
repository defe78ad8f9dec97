"""A whole repair: from the paths of wheels to repaired wheels in a folder."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileStamp
from rocwheel.core.workers import open_workers, raise_all
from rocwheel.core.writing import check_destination
from rocwheel.installed.reading.read_tree import real_paths
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.plan import RepairPlan
from rocwheel.repair.plan_wheels import plan_repairs
from rocwheel.repair.write import KnownWheels, write_repairs
from rocwheel.wheels.sdist import SourceDate
from rocwheel.wheels.zip_reader import UnpackedMembers

if TYPE_CHECKING:
    from collections.abc import Collection

    from rocwheel.core.errors import RocwheelError

__all__ = ["RepairJob", "RepairResult"]


class RepairResult(msgspec.Struct, frozen=True):
    """What a repair found, and what it wrote."""

    wheels: tuple[RepairPlan, ...]
    """For each wheel what changes, and what no repair can fix."""
    written: tuple[str, ...]
    """The paths of the repaired wheels; empty when nothing was to be written."""


class RepairJob(msgspec.Struct, frozen=True):
    """What is repaired, and where it goes."""

    wheels: tuple[Path, ...]
    with_packages: tuple[Path, ...]
    """The packages that the wheels are installed with."""
    dest_dir: Path | None
    """The folder for the repaired wheels; none to write nothing."""
    options: RepairOptions

    def run(self, *, progress: Progress = SILENT, problems: list[RocwheelError] | None = None) -> RepairResult:
        """Plan the repair of each wheel, and write the repaired ones with the date of ``SOURCE_DATE_EPOCH``.

        Raises what `check_destination`, `plan_repairs` and `write_repairs` raise. With a list ``problems``, the errors
        about single wheels are appended to it, and all others are repaired, if there are any.
        """
        if self.dest_dir is not None:
            check_destination(self.dest_dir)
        stamps = _stamps(self.wheels)
        found: list[RocwheelError] = [] if problems is None else problems
        with closing(UnpackedMembers()) as unpacked:
            kept = None if self.dest_dir is None else unpacked
            plans = plan_repairs(self.wheels, self.with_packages, self.options, found, kept, progress)
            if problems is None:
                raise_all("wheels", found)
            if self.dest_dir is None:
                return RepairResult(tuple(plans), ())
            date, known = SourceDate.from_environment(os.environ), KnownWheels(stamps, unpacked)
            with open_workers() as executor:
                written = write_repairs(plans, self.dest_dir, executor, date, known=known, progress=progress)
        return RepairResult(tuple(plans), tuple(map(str, written)))


def _stamps(wheels: Collection[Path]) -> dict[str, FileStamp]:
    """Return the stamps of wheels, and of those in folders, by path; raise `InputError` for one that is not there."""
    # What can't be read in a folder is for the reader to report, with all else that is wrong there.
    return {str(path): FileStamp.at(path) for path in real_paths(wheels).values() if path in wheels or path.exists()}
