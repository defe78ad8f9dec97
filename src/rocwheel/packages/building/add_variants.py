"""Adding wheel variants (a draft) to a folder of distributions that holds the packages for each GPU."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.core.errors import InputError
from rocwheel.core.scratch import remove_abandoned
from rocwheel.core.workers import raise_all
from rocwheel.distributions.formats.source_date import SourceDate
from rocwheel.distributions.formats.wheel import WheelWriter
from rocwheel.distributions.formats.wheel_file_name import name_and_version
from rocwheel.distributions.zip.directory import read_directory
from rocwheel.distributions.zip.dist_info import find_dist_info
from rocwheel.distributions.zip.reader import read_member
from rocwheel.packages.planning.sdk_source import sdk_license
from rocwheel.packages.variants.read_packages import list_wheels, read_packages
from rocwheel.packages.variants.selecting_wheels import SelectingWheel, make_selecting_wheels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = [
    "AddedVariants",
    "NoGpuPackagesError",
    "PlannedVariants",
    "add_variants",
    "find_clashes",
    "plan_added",
    "write_added",
]


class NoGpuPackagesError(InputError):
    """A folder without packages that exist for single GPUs."""

    def __init__(self, dist_dir: Path) -> None:
        expected = "packages whose names end with a GPU, such as rocm-sdk-device-gfx942"
        super().__init__(dist_dir, "holds no packages to make variants of", expected=expected)


class AddedVariants(msgspec.Struct, frozen=True):
    """File names of the wheels that select packages of GPUs."""

    wheels: tuple[str, ...]
    """All that belong to the packages in the folder."""
    written: tuple[str, ...]
    """Those of them that were not there yet, or were others."""
    stale: tuple[str, ...]
    """Those of the same names that stand there for GPUs without packages."""


class PlannedVariants(msgspec.Struct, frozen=True):
    """The wheels that belong to the packages in a folder, before any of them is written."""

    dist_dir: Path
    selecting: tuple[SelectingWheel, ...]
    stale: tuple[str, ...]
    """As in `AddedVariants`."""

    @property
    def files(self) -> dict[str, dict[str, bytes]]:
        """What each wheel holds, by its file name and by the names in its ``.dist-info``."""
        return {wheel.name.file_name: wheel.files for wheel in self.selecting}


def add_variants(dist_dir: Path) -> AddedVariants:
    """Write the wheels that select among the packages for each GPU in ``dist_dir``; those that stand there are kept.

    Raises as `plan_added` does; `WorkError` when one can't be written.
    """
    return write_added(plan_added(dist_dir))


def plan_added(dist_dir: Path) -> PlannedVariants:
    """Return the wheels that select among the packages for each GPU in ``dist_dir``, and write nothing.

    Raises `NoGpuPackagesError` for a folder without such packages, `InputError` for a wheel that can't be read, and
    where a distribution of somebody else has the name of one of these; `ProblemsError` for several.
    """
    selecting = make_selecting_wheels(read_packages(dist_dir), sdk_license())
    if not selecting:
        raise NoGpuPackagesError(dist_dir)
    names = {wheel.name.file_name for wheel in selecting}
    others = [path for path in list_wheels(dist_dir) if _is_of(path, selecting) and path.name not in names]
    standing = [dist_dir / name for name in sorted(names) if (dist_dir / name).exists()]
    raise_all(str(dist_dir), list(_find_strangers([*others, *standing])))
    return PlannedVariants(dist_dir, tuple(selecting), tuple(path.name for path in others))


def write_added(planned: PlannedVariants) -> AddedVariants:
    """Write planned wheels but for those that stand there already; raise `WorkError` when one can't be written."""
    dist_dir = planned.dist_dir
    remove_abandoned(dist_dir)
    moment = SourceDate.from_environment(os.environ)
    written = sorted(wheel.name.file_name for wheel in planned.selecting if _write(wheel, dist_dir, moment))
    return AddedVariants(tuple(sorted(planned.files)), tuple(written), planned.stale)


def find_clashes(plans: Iterable[PlannedVariants], dist_dirs: Sequence[Path]) -> Iterator[InputError]:
    """Yield an error for each planned wheel that differs from one of its name in another folder of the same index.

    ``dist_dirs`` are the folders of that index, of which installers can take one file of a name alone. Raises
    `InputError` for a wheel that stands there and can't be read.
    """
    planned = {plan.dist_dir: plan.files for plan in plans}
    for name in sorted({name for folder in dist_dirs for name in planned.get(folder, {})}):
        held = {folder: _held(folder, name, planned) for folder in dist_dirs}
        first, *others = [folder for folder, files in held.items() if files is not None]
        yield from (_clash(folder / name, first / name) for folder in others if held[folder] != held[first])


def _held(folder: Path, name: str, planned: Mapping[Path, Mapping[str, dict[str, bytes]]]) -> dict[str, bytes] | None:
    """Return what the wheel of a name in a folder will hold; none where there will be no such wheel."""
    files = planned.get(folder, {}).get(name)
    return _read_files(folder / name) if files is None and (folder / name).exists() else files


def _clash(path: Path, other: Path) -> InputError:
    base = canonicalize_name(name_and_version(path.name)[0])
    found = f"would require other packages than {other}, and one index lists both"
    remedy = f"Keep the {base} packages for all of these GPUs in one folder."
    return InputError(path, found, expected="one wheel of a name", remedy=remedy)


def _is_of(path: Path, selecting: Sequence[SelectingWheel]) -> bool:
    name, version = name_and_version(path.name)
    return (canonicalize_name(name), version) in {
        (wheel.metadata.name, wheel.name.stem.partition("-")[2]) for wheel in selecting
    }


def _find_strangers(paths: Sequence[Path]) -> Iterator[InputError]:
    """Yield an error for each wheel that has files: no selecting wheel has any."""
    for path in paths:
        members = [member.name for member in read_directory(path)]
        info = find_dist_info(path, members)
        if any(not name.startswith(f"{info}/") for name in members):
            found = "has files, and the name of the wheels that select packages for a GPU"
            yield InputError(path, found, expected="no distribution of this name and version")


def _write(wheel: SelectingWheel, dist_dir: Path, moment: SourceDate) -> bool:
    """Write a wheel unless it stands there already; return whether it did not."""
    path = dist_dir / wheel.name.file_name
    if path.exists() and _read_files(path) == wheel.files:
        return False
    writer = WheelWriter(path, wheel.name.dist_info, moment.zip_time)
    try:
        writer.close(wheel.files)
    except BaseException:
        writer.abort()
        raise
    return True


def _read_files(path: Path) -> dict[str, bytes]:
    members = {member.name.partition("/")[2]: read_member(member) for member in read_directory(path)}
    return {name: data for name, data in members.items() if name != "RECORD"}
