"""The plan for one fat library: its units in groups, the archives of these, and the markers that lead there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.wrappers import FatBinary
from rocwheel.binary.kpack.markers import Marker
from rocwheel.device.splitting.host.host_file import UnitLink
from rocwheel.device.splitting.planning.groups import UnitGroup, group_units
from rocwheel.device.splitting.planning.names import ARCHIVE_FOLDER, archive_path, search_path
from rocwheel.device.splitting.planning.units import Unit, by_form, read_units, size_checks, wrapper_indices

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.code_objects import TargetId
    from rocwheel.core.reading import Data

__all__ = ["LibraryPlan", "PlannedArchive", "plan_library"]


class PlannedArchive(msgspec.Struct, frozen=True):
    """An archive to be written: where, below the root, the name of its group, and its base target."""

    path: str
    group: str
    target: str


class LibraryPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the device code of the library at ``path`` below the root."""

    path: str
    kernel_name: str
    fat: FatBinary
    groups: tuple[UnitGroup, ...]
    folder: str = ARCHIVE_FOLDER
    """Where its archives go, below the root."""

    @property
    def archives(self) -> tuple[PlannedArchive, ...]:
        """The archives to write."""
        return tuple(
            PlannedArchive(archive_path(group.name, target, self.folder), group.name, target)
            for group in self.groups
            for target in group.targets
        )

    @property
    def units(self) -> tuple[Unit, ...]:
        """All units, in the order of their indices."""
        return tuple(sorted((unit for group in self.groups for unit in group.units), key=lambda unit: unit.index))

    @property
    def code_size(self) -> int:
        """Bytes of all code objects that go into archives."""
        return sum(entry.size for group in self.groups for unit in group.units for entry in unit.entries)

    def group_of(self) -> dict[int, UnitGroup]:
        """Return the group of each unit by its index."""
        return {unit.index: group for group in self.groups for unit in group.units}

    def markers(self, path: str = "") -> tuple[Marker, ...]:
        """Return the markers that wrappers point to, each once; for another name of the file if ``path`` is given.

        Units of one group share a marker, unless their bundles named or ordered entries in another way.
        """
        return tuple(dict.fromkeys(marker for _, marker in self._iter_markers(path or self.path)))

    def links(self) -> tuple[UnitLink, ...]:
        """Return what each wrapper says once its code is elsewhere, in the order of the file."""
        position = {marker: number for number, marker in enumerate(self.markers())}
        marker_of = {index: position[marker] for index, marker in self._iter_markers(self.path)}
        return tuple(UnitLink(index, marker_of[index]) for index in wrapper_indices(self.fat, self.units))

    def _iter_markers(self, path: str) -> Iterator[tuple[int, Marker]]:
        for group in self.groups:
            paths = (search_path(path, group.name, self.folder),)
            checks = {form: size_checks(units) for form, units in by_form(group.units).items()}
            for unit in group.units:
                spellings, compressed = unit.form
                yield unit.index, Marker(self.kernel_name, paths, spellings, checks[unit.form], compressed)


def plan_library(
    data: Data,
    fat: FatBinary,
    path: str,
    group_name: str,
    *,
    keep: Sequence[TargetId] = (),
    folder: str = ARCHIVE_FOLDER,
) -> LibraryPlan:
    """Plan the splitting of the library ``data``, which is at ``path`` below the root, where wrappers find it by.

    Its archives go to ``folder`` below the root.

    Raises `NotSplittableError` and `DeviceCodeError` as `read_units` does, and `KpackError` as `group_units` does.
    """
    groups = group_units(read_units(data, fat, keep), group_name)
    return LibraryPlan(path=path, kernel_name=path, fat=fat, groups=groups, folder=folder)
