"""Joining the records of a wheel's tasks, in whatever order they come, into the order of its bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.reading import ChangedFileError
from rocwheel.packages.clustered.divide import Group, is_encoded
from rocwheel.packages.clustered.records import Cut, Hashed, Opening, Packed, Piece, Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.packages.clustered.divide import CutMember, Unit

__all__ = ["Collected", "Record"]

Record = Packed | Cut | Hashed


class Collected:
    """The records of one wheel, by the number of the unit that each belongs to."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._units = units
        self._records: list[list[Record]] = [[] for _ in units]
        self._open = len(units)

    def add(self, number: int, record: Record) -> bool:
        """Take a record; return whether it was the last one of the wheel."""
        records = self._records[number]
        records.append(record)
        if _is_complete(self._units[number], records):
            self._open -= 1
        return not self._open

    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces of the wheel; raise `ChangedFileError` for a file that was written to meanwhile."""
        both = zip(self._units, self._records, strict=True)
        return tuple(piece for unit, records in both for piece in _pieces(unit, records))


def _is_complete(unit: Unit, records: Sequence[Record]) -> bool:
    if isinstance(unit, Group):
        return sum(len(record.members) for record in records if isinstance(record, Packed)) == len(unit.members)
    return len(records) == len(unit.spans) + (not is_encoded(unit.placed))


def _pieces(unit: Unit, records: Sequence[Record]) -> list[Piece]:
    if isinstance(unit, Group):
        packed = sorted((record for record in records if isinstance(record, Packed)), key=lambda one: one.first)
        return [
            Piece(one.piece, tuple(Section(member.size, member.opening, member.digest) for member in one.members))
            for one in packed
        ]
    return _cut_pieces(unit, records)


def _cut_pieces(unit: CutMember, records: Sequence[Record]) -> list[Piece]:
    cuts = sorted((record for record in records if isinstance(record, Cut)), key=lambda cut: cut.span.start)
    hashed = next((record for record in records if isinstance(record, Hashed)), None)
    if hashed is not None and hashed.crc32s != tuple(cut.facts.crc32 for cut in cuts):
        raise ChangedFileError(unit.placed.name, "was written to while it was being packed")
    first, last = cuts[0], cuts[-1]
    opening = Opening(unit.placed.name, unit.placed.mode, first.facts.method, first.facts.bound)
    sections = [
        Section(
            cut.piece.size,
            opening if cut is first else None,
            hashed.digest if hashed and cut is last else None,
            is_last=cut is last,
            is_encoded=hashed is None,
        )
        for cut in cuts
    ]
    return [Piece(cut.piece, (section,)) for cut, section in zip(cuts, sections, strict=True)]
