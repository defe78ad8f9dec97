"""Reads the wheels that a repair is given, with the packages next to them, and plans the repair of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.core.messages import find_below
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import convert_good
from rocwheel.installed.reading.read_tree import read_environments
from rocwheel.installed.reading.wheel_reading import WheelReading
from rocwheel.repair.plan import RepairPlanner

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rocwheel.core.errors import RocwheelError
    from rocwheel.repair.options import RepairOptions
    from rocwheel.repair.plan import RepairPlan
    from rocwheel.wheels.zip_reader import UnpackedMembers

__all__ = ["plan_repairs"]


def plan_repairs(
    wheels: Sequence[Path],
    with_packages: Sequence[Path],
    options: RepairOptions,
    problems: list[RocwheelError],
    unpacked: UnpackedMembers | None = None,
    progress: Progress = SILENT,
) -> list[RepairPlan]:
    """Read wheels and the packages that they are installed with, and return the plan for each wheel.

    A folder stands for its wheels. What is read of members stays in ``unpacked``. Device code is not decompressed, as a
    repair does not change it. The errors about wheels that can't be read, and about those that no repair makes
    installable (`RepairPlanner.plan`), are appended to ``problems`` if there are other wheels, else raised. Raises
    `InputError` for a path that is neither a wheel nor a folder of wheels.
    """
    for path in wheels:
        _check(path)
    environments = read_environments(wheels, with_packages, unread=problems, how=_reading(unpacked), progress=progress)
    planner = RepairPlanner(environments, options)
    return convert_good("wheels", planner.plan, environments.everything.audited_distributions, problems)


def _reading(unpacked: UnpackedMembers | None) -> WheelReading:
    if unpacked is None:
        return WheelReading(headers_only=True)
    return WheelReading(unpack=unpacked.open, digest=unpacked.digest, headers_only=True)


def _check(path: Path) -> None:
    """Raise `InputError` for a path that is neither a wheel nor a folder of wheels."""
    if path.is_dir():
        if not any(path.glob("*.whl")):
            below = find_below(path, lambda found: found.suffix == ".whl")
            remedy = f"There are wheels in {below}." if below else ""
            raise InputError(path, "a folder without wheels", expected="a wheel, or a folder of wheels", remedy=remedy)
    elif path.suffix != ".whl":
        raise InputError(path, "not a wheel", expected="a file whose name ends with .whl, or a folder of wheels")
