"""The machine numbers of AMDGPU code objects (``EF_AMDGPU_MACH``), read from ``machine.toml``."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.decoding import read_table

if TYPE_CHECKING:
    from rocwheel.binary.code_objects.target_id import TargetId

__all__ = ["Machine", "find_illegal", "known_processors", "machine_of", "machine_of_number"]

_PROCESSOR = re.compile(r"gfx[0-9a-f]+(-[a-z0-9]+)*|amdgcnspirv")


class Machine(msgspec.Struct, frozen=True):
    """A processor, its number, and the features that a target id of it may set."""

    mach: int
    processor: str
    features: frozenset[str]
    any: frozenset[str] = frozenset()
    """The features that ``e_flags`` records as "any" in all of its code, and that no target id may set."""


class _Table(msgspec.Struct, frozen=True):
    machines: tuple[Machine, ...]


@cache
def _load() -> tuple[Machine, ...]:
    return read_table("rocwheel.binary.code_objects", "machine.toml", _Table).machines


@cache
def _by_number() -> dict[int, Machine]:
    return {machine.mach: machine for machine in _load()}


@cache
def _by_processor() -> dict[str, Machine]:
    return {machine.processor: machine for machine in _load()}


def machine_of_number(mach: int) -> Machine | None:
    """Return the machine of the low byte of ``e_flags``; none for numbers that no compiler used yet."""
    return _by_number().get(mach)


def machine_of(processor: str) -> Machine | None:
    """Return the machine of a processor such as ``gfx90a``; none for names that no compiler knows yet."""
    return _by_processor().get(processor)


def known_processors() -> tuple[str, ...]:
    """Return the names of all processors, generic ones included."""
    return tuple(_by_processor())


def find_illegal(target: TargetId) -> str | None:
    """Return why no compiler knows a target: no such processor, or a feature that it lacks; none if all is well.

    A processor that isn't known passes if it is spelled like one, since newer compilers know more.
    """
    if not _PROCESSOR.fullmatch(target.processor):
        return f"{target.processor!r} is not a processor"
    machine = machine_of(target.processor)
    lacking = sorted(target.features.keys() - machine.features) if machine else []
    return f"{target.processor} doesn't have the feature {lacking[0]}" if lacking else None
