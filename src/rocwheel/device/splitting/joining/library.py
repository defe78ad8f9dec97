"""The plan for joining one library: the code of all its units, and what no archive brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import BundleEntryId
from rocwheel.binary.kpack.markers import check_sizes
from rocwheel.core.errors import InputError
from rocwheel.core.workers import raise_all
from rocwheel.device.splitting.joining.find_code import (
    NOTHING_RENUMBERED,
    UnitCode,
    archives_of,
    find_code,
    needs_archives,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rocwheel.binary.kpack.markers import Marker, SplitLibrary, SplitUnit
    from rocwheel.device.splitting.joining.find_code import ArchiveFile

__all__ = ["JoinPlan", "plan_library_join"]


class JoinPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The bundles of a library, in the order of their indices, and which of them each wrapper points to."""

    units: tuple[UnitCode, ...]
    links: tuple[int, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that the library gets code for, as bundles name them, each once."""
        spellings = {code.spelling for unit in self.units for code in unit.entries if code.entry}
        found = {str(BundleEntryId.parse(spelling).target) for spelling in spellings}
        return tuple(sorted(found))

    @property
    def missing(self) -> tuple[str, ...]:
        """The targets that some unit had code for, and no archive brings."""
        return tuple(sorted({target for unit in self.units for target in unit.missing}))

    @property
    def code_size(self) -> int:
        """Bytes of all code objects."""
        return sum(code.entry.size for unit in self.units for code in unit.entries if code.entry)


def plan_library_join(
    path: str,
    library: SplitLibrary,
    archives: Sequence[ArchiveFile],
    *,
    renumbered: Mapping[tuple[str, int], int] = NOTHING_RENUMBERED,
) -> JoinPlan:
    """Plan the joining of ``library``, which is at ``path`` below the root, with ``archives`` of the same root.

    ``renumbered`` is as for `find_code`.
    Raises `InputError` when none of them is one that its markers name, and as `find_code` does.
    """
    distinct = sorted(dict.fromkeys(map(_key, library.units)), key=lambda key: key[0])
    by_key: dict[tuple[int, str], SplitUnit] = {_key(unit): unit for unit in library.units}
    named = {key: archives_of(path, by_key[key], archives) for key in distinct}
    if any(needs_archives(unit) for unit in library.units) and not any(named.values()):
        paths = dict.fromkeys(path for unit in library.units for path in unit.marker.search_paths)
        found = "its archives are missing"
        remedy = "Give the folders of the targets, too, or the device wheels."
        raise InputError(path, found, expected=f"at least one of {', '.join(paths)}", remedy=remedy)
    units = tuple(find_code(by_key[key], named[key], name=path, renumbered=renumbered) for key in distinct)
    raise_all(path, list(_strangers(path, [by_key[key] for key in distinct], units)))
    return JoinPlan(units=units, links=tuple(distinct.index(_key(unit)) for unit in library.units))


def _strangers(path: str, split: Sequence[SplitUnit], units: Sequence[UnitCode]) -> Iterator[InputError]:
    """Yield an error for each entry of bundles whose code has other sizes than when it was split off."""
    members: dict[Marker, list[tuple[int, UnitCode]]] = {}
    for unit, code in zip(split, units, strict=True):
        members.setdefault(unit.marker, []).append((unit.index, code))
    for marker, codes in members.items():
        for spelling, check in zip(marker.entries if marker.checks else (), marker.checks, strict=True):
            found = [(index, one) for index, code in codes for one in code.entries if one.spelling == spelling]
            sizes = [(index, one.entry.size) for index, one in found if one.entry is not None]
            if len(sizes) == len(codes) and check_sizes(sizes) != check:
                files = dict.fromkeys(one.file.path for _, one in found if one.file is not None)
                yield InputError(
                    path,
                    f"{', '.join(files)}: code objects of other sizes than were split off from it",
                    expected="an archive of the same build",
                    remedy="Take the folders that were made together with this file.",
                )


def _key(unit: SplitUnit) -> tuple[int, str]:
    return unit.index, unit.marker.kernel_name
