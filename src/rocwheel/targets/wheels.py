"""What wheels say and hold about GPU targets, and which of them complete which."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from rocwheel.binary.target_id import TargetId, parse_target_id
from rocwheel.errors import InputError
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.coherence import Carrier
from rocwheel.targets.errors import UnknownTargetError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["WheelFacts", "carriers_of", "kpack_target"]


class WheelFacts(msgspec.Struct, frozen=True):
    """What coherence needs of one wheel."""

    path: str
    name: str
    """The distribution's name, normalised."""
    requirements: tuple[str, ...]
    targets: tuple[TargetId, ...]
    roots: frozenset[str]
    """Its top-level directories, without ``.dist-info`` and ``.data``."""


def kpack_target(name: str, *, source: str) -> TargetId:
    """Return the one target that a kpack file holds the code of, which its name ends with.

    Raises `InputError`, led by ``source``, when that is no target of a GPU; it may be newer than the catalogue.
    """
    target = parse_target_id(name.removesuffix(".kpack").rpartition("_")[2], source=source)
    if not target.processor.startswith("gfx"):
        raise UnknownTargetError(target.processor, load_catalog().processors, source=source)
    return target


def carriers_of(wheels: Sequence[WheelFacts]) -> list[Carrier]:
    """Return what `check_coherence` compares: each wheel with all it needs, directly or through others of ``wheels``.

    A wheel whose directories all belong to one that it needs completes that one, as the kernels of one GPU do. Wheels
    of one package that carry and need the same, as those for several versions of Python do, count once.
    """
    by_name = {wheel.name: wheel for wheel in wheels}
    carriers = (
        Carrier(wheel.name, wheel.targets, _needed(wheel, by_name), _completed_by(wheel, by_name)) for wheel in wheels
    )
    return list(dict.fromkeys(carriers))


def _needed(wheel: WheelFacts, by_name: dict[str, WheelFacts]) -> tuple[str, ...]:
    """Follow requirements, with the extras that each asks for, through all given wheels and no further."""
    reached: set[tuple[str, frozenset[str]]] = set()
    waiting = [(wheel.name, frozenset[str]())]
    while waiting:
        name, extras = waiting.pop()
        for requirement in _requirements(by_name[name], extras):
            step = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            if step not in reached and step[0] in by_name:
                waiting.append(step)
            reached.add(step)
    return tuple(sorted({name for name, _ in reached} - {wheel.name}))


def _requirements(wheel: WheelFacts, extras: frozenset[str]) -> list[Requirement]:
    try:
        requirements = [Requirement(text) for text in wheel.requirements]
    except InvalidRequirement as e:
        raise InputError(wheel.path, f"has a malformed Requires-Dist ({e})") from e
    asked = extras or {""}
    return [r for r in requirements if r.marker is None or any(r.marker.evaluate({"extra": extra}) for extra in asked)]


def _completed_by(wheel: WheelFacts, by_name: dict[str, WheelFacts]) -> str:
    names = {canonicalize_name(requirement.name) for requirement in _requirements(wheel, frozenset())}
    owners = [by_name[name] for name in sorted(names) if name in by_name and name != wheel.name]
    return next((owner.name for owner in owners if wheel.roots and wheel.roots <= owner.roots), "")
