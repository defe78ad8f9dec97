"""Addresses of one library translated to another that has the same sections in other places.

What grows moves what lies behind it. Sections move as a whole; of one that has another size, only its ends and the
places that wrappers point to are known.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from rocwheel.binary.elf.sections import SHF_ALLOC, SHF_EXECINSTR, SHF_TLS, SHT_NOBITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.binary.elf.sections import Section

__all__ = ["Moves"]


class _Region(NamedTuple):
    """Sections behind one another that have moved by the same number of bytes."""

    start: int
    stop: int
    step: int
    is_code: bool


class Moves:
    """The moves of the ``pairs`` of sections, and of single ``points``: pairs of addresses, old and new."""

    def __init__(self, pairs: Sequence[tuple[Section, Section]], points: Iterable[tuple[int, int]]) -> None:
        loaded = [(a, b) for a, b in pairs if _has_address(a)]
        self._regions = list(_regions([(a, b) for a, b in loaded if a.size == b.size]))
        ends = ((a.address + a.size, b.address + b.size) for a, b in loaded)
        self._points = {*points, *ends, *((a.address, b.address) for a, b in loaded)}

    def has(self, old: int, new: int, *, margin: int = 0, is_code: bool = False) -> bool:
        """Return whether what is at ``old`` in the one is at ``new`` in the other; with ``is_code``, instructions are.

        An address is taken for one of a section where it is at most ``margin`` bytes away from it, as addresses in
        instructions and in tables are often not those of the thing itself.
        """
        if not is_code and (old, new) in self._points:
            return True
        step = new - old
        return any(
            region.step == step and region.start - margin <= old <= region.stop + margin
            for region in self._regions
            if region.is_code or not is_code
        )


def _has_address(section: Section) -> bool:
    """Return whether a section takes addresses of its own: zeros of threads have those of what follows."""
    return bool(section.flags & SHF_ALLOC) and not (section.flags & SHF_TLS and section.type == SHT_NOBITS)


def _regions(pairs: Sequence[tuple[Section, Section]]) -> Iterator[_Region]:
    ordered = sorted(pairs, key=lambda pair: pair[0].address)
    kinds = groupby(ordered, lambda pair: (pair[1].address - pair[0].address, bool(pair[0].flags & SHF_EXECINSTR)))
    for (step, is_code), group in kinds:
        sections = [a for a, _ in group]
        yield _Region(sections[0].address, max(a.address + a.size for a in sections), step, is_code)
