"""Dividing the members of a wheel into tasks by bytes: small ones grouped, large ones cut. Values in, values out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.packing.spans import CUT_FROM, Span
from rocwheel.distributions.packing.stream_codec import STREAM_PIECE
from rocwheel.packages.building.members import PlacedMember, planned_size
from rocwheel.packages.plan import FileMember, TarMember

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["CutMember", "Group", "Unit", "divide_wheel", "is_encoded"]

_TASK = 32 << 20
"""Bytes that one worker deflates in about a second: what a task costs beside its work, some milliseconds, is little."""
_STORED_TASK = 128 << 20
"""The same where nothing is deflated."""
_LEAST = 64 << 10
"""What a file counts at least: many small ones take time, too."""


class Group(msgspec.Struct, frozen=True):
    """Members that follow one another in their wheel, packed in one task."""

    members: tuple[PlacedMember, ...]


class CutMember(msgspec.Struct, frozen=True):
    """A member that is packed in several tasks, one for each span."""

    placed: PlacedMember
    spans: tuple[Span, ...]


Unit = Group | CutMember


def divide_wheel(members: Sequence[PlacedMember], level: int) -> tuple[Unit, ...]:
    """Return units for the members of a wheel, in their order in it; ``level`` is that of deflate, 0 stores."""
    task = _TASK if level else _STORED_TASK
    return tuple(_units(members, task))


def _units(members: Iterable[PlacedMember], task: int) -> Iterator[Unit]:
    group: list[PlacedMember] = []
    size = 0
    for placed in members:
        counted = max(planned_size([placed.member]), _LEAST)
        spans = _spans(placed, task)
        if group and (spans or size + counted > task):
            yield Group(tuple(group))
            group, size = [], 0
        if spans:
            yield CutMember(placed, spans)
        else:
            group.append(placed)
            size += counted
    if group:
        yield Group(tuple(group))


def _spans(placed: PlacedMember, task: int) -> tuple[Span, ...]:
    """Return the spans that a member is cut into, none where it is packed as a whole.

    Its size after edits is not known yet. So the last span has no end.
    """
    size = planned_size([placed.member])
    step = _step(placed, size, task)
    if not step or size <= step:
        return ()
    starts = [*range(0, size, step)]
    return tuple(Span(start, stop) for start, stop in zip(starts, [*starts[1:], None], strict=True))


def _step(placed: PlacedMember, size: int, task: int) -> int:
    """Return how many bytes of a member go into a task, 0 for one that can't be cut."""
    if is_encoded(placed):
        return STREAM_PIECE if _is_slow(placed) else max(task, STREAM_PIECE)
    # What becomes of device code that is compressed is known to nobody before.
    is_edited = isinstance(placed.member, FileMember) and placed.member.compress_for is not None
    return task if size >= CUT_FROM and not is_edited else 0


def is_encoded(placed: PlacedMember) -> bool:
    """Return whether a member holds a compressed stream of its own."""
    return isinstance(placed.member, TarMember) and placed.member.compression != "none"


def _is_slow(placed: PlacedMember) -> bool:
    return isinstance(placed.member, TarMember) and placed.member.compression == "xz"
