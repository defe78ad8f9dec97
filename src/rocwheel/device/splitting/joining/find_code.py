"""Which code objects in archives are those of a unit, and for which entries of its bundle."""

from __future__ import annotations

import posixpath
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import BundleEntryId, DeviceCodeError, Place, TargetId, parse_target_id
from rocwheel.binary.kpack.archive import KpackArchive, KpackEntry
from rocwheel.binary.kpack.markers import leads_to
from rocwheel.core.reading import FileRange
from rocwheel.device.editing.make_bundle import HOST_ENTRY
from rocwheel.device.splitting.planning.keys import code_keys, named_features

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocwheel.binary.kpack.markers import SplitUnit

__all__ = ["NOTHING_RENUMBERED", "ArchiveFile", "FoundCode", "UnitCode", "archives_of", "find_code", "needs_archives"]

NOTHING_RENUMBERED: Mapping[tuple[str, int], int] = MappingProxyType({})
"""All indices in archives are right."""

_ENTRY = "hipv4-amdgcn-amd-amdhsa--"


class ArchiveFile(msgspec.Struct, frozen=True):
    """An archive at a path below the root of the host file's tree, over which device folders are laid."""

    path: str
    content: FileRange
    archive: KpackArchive


class FoundCode(msgspec.Struct, frozen=True):
    """An entry of a bundle, by its id, and where its code is; none for the host, which has no code."""

    spelling: str
    file: ArchiveFile | None = None
    entry: KpackEntry | None = None


class UnitCode(msgspec.Struct, frozen=True):
    """The entries of a unit's bundle, in their order, and the targets that it had code for and no archive brings."""

    entries: tuple[FoundCode, ...]
    missing: tuple[str, ...] = ()
    was_compressed: bool = False
    """Whether the bundle was a compressed one, as far as the marker tells."""


def archives_of(binary: str, unit: SplitUnit, archives: Sequence[ArchiveFile]) -> tuple[ArchiveFile, ...]:
    """Return those of ``archives`` that the marker of a unit of the file at ``binary`` names, in its order."""
    places = [_place(binary, path) for path in unit.marker.search_paths]
    named = (file for place in places for file in archives if leads_to(place, file.path))
    return tuple({file.path: file for file in named}.values())


def needs_archives(unit: SplitUnit) -> bool:
    """Return whether a unit has code in archives: not so if none was left when it was split for some targets alone."""
    entries = unit.marker.entries
    return not entries or any(BundleEntryId.parse(spelling).target for spelling in entries)


def _place(binary: str, search_path: str) -> str:
    """Return where below the root the archives are that a search path names.

    A file that is looked at outside of its tree has a path that climbs above the root; what is left counts then.
    """
    path = posixpath.normpath(posixpath.join(posixpath.dirname(binary), search_path)).lstrip("/")
    while path.startswith("../"):
        path = path.removeprefix("../")
    return path


def find_code(
    unit: SplitUnit,
    archives: Sequence[ArchiveFile],
    *,
    name: str,
    renumbered: Mapping[tuple[str, int], int] = NOTHING_RENUMBERED,
) -> UnitCode:
    """Return the code of ``unit`` in the archives that its marker names.

    If the marker keeps the ids of the bundle's entries, these come back in their order, and then the code that archives
    have for further targets, as after a retarget; else the host's entry, and one for each code object by target.
    ``renumbered`` says which unit a code object is, by its archive and its index there, where that index is wrong.
    Raises `DeviceCodeError`, with the ``name`` of the host file, when an archive for one of its targets lacks the unit.
    """
    if unit.marker.entries:
        return _by_ids(unit, archives, name)
    return UnitCode((FoundCode(HOST_ENTRY), *_by_targets(unit, archives, renumbered)))


def _by_targets(
    unit: SplitUnit, archives: Sequence[ArchiveFile], renumbered: Mapping[tuple[str, int], int]
) -> list[FoundCode]:
    """Return the code of a unit in archives, an entry for each code object, sorted by its target."""
    found: dict[tuple[str, int], tuple[ArchiveFile, KpackEntry]] = {}
    for file in archives:
        for entry in file.archive.entries:
            if entry.binary != unit.marker.kernel_name or entry.index is None:
                continue
            if renumbered.get((file.path, entry.index), entry.index) == unit.index:
                key = (file.path, entry.ordinal)
                found[key] = min(found.get(key, (file, entry)), (file, entry), key=lambda pair: len(pair[1].target))
    entries = (FoundCode(f"{_ENTRY}{entry.target}", file, entry) for file, entry in found.values())
    return sorted(entries, key=lambda code: code.spelling)


def _by_ids(unit: SplitUnit, archives: Sequence[ArchiveFile], name: str) -> UnitCode:
    ids = [(spelling, BundleEntryId.parse(spelling, source=name)) for spelling in unit.marker.entries]
    targets = [entry_id.target for _, entry_id in ids if entry_id.target is not None]
    entries, missing = [], []
    for spelling, entry_id in ids:
        if entry_id.target is None:
            entries.append(FoundCode(spelling))
            continue
        file = next((file for file in archives if entry_id.target.processor in file.archive.processors), None)
        if file is None:
            missing.append(str(entry_id.target))
        else:
            entries.append(FoundCode(spelling, file, _entry(unit, file, targets, entry_id.target, name)))
    own = {target.processor for target in targets}
    further = [file for file in archives if own.isdisjoint(file.archive.processors)]
    further_code = _by_targets(unit, further, NOTHING_RENUMBERED)
    return UnitCode((*entries, *further_code), tuple(missing), unit.marker.compressed)


def _entry(unit: SplitUnit, file: ArchiveFile, targets: Sequence[TargetId], target: TargetId, name: str) -> KpackEntry:
    listed = [parse_target_id(text, source=file.path) for text in file.archive.targets]
    features = named_features(key for key in listed if key.processor == target.processor)
    position = targets.index(target)
    for key, at in code_keys(targets, target.processor, features).items():
        entry = file.archive.find(unit.marker.kernel_name, unit.index, str(key)) if at == position else None
        if entry is not None:
            return entry
    raise DeviceCodeError(
        Place(name, unit.offset),
        f"{file.path} has no code for {target} of {unit.marker.kernel_name}#{unit.index}",
        expected="code for every unit in the archives that it names",
        remedy="The archive may be that of another build: take one that was made with this file.",
    )
