"""Taking code that no GPU to keep runs out of bundles, by the rule of unmodified runtimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import DeviceCodeError, TargetId
from rocwheel.targets.compatibility import Fit, covers, fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.binary.bundles.plain import BundlePart
    from rocwheel.binary.code_objects import Place

__all__ = ["Prune", "needed_code", "serves"]


def serves(code: TargetId, wanted: TargetId) -> bool:
    """Return whether some GPU that falls under ``wanted`` runs ``code``.

    So ``gfx90a`` stands for all of its variants, and ``gfx90a:xnack+`` is served by code that leaves xnack open, too.
    """
    agent = TargetId(wanted.processor, **(code.features | wanted.features))
    return fit(code, agent) is not Fit.NONE


def needed_code(codes: Iterable[TargetId], keep: Sequence[TargetId]) -> frozenset[TargetId]:
    """Return those of ``codes``, the targets of one bundle, that GPUs of ``keep`` need.

    That is the code for their own processors. Code for a generic processor, and SPIR-V, stays as long as one of them
    that it serves lacks code of its own, in some setting of its features. A generic processor to keep means its own
    code, not that for its members.
    """
    offered = frozenset(codes)
    return frozenset(code for code in offered if any(_needs(wanted, code, offered) for wanted in keep))


def _needs(wanted: TargetId, code: TargetId, offered: frozenset[TargetId]) -> bool:
    if not serves(code, wanted):
        return False
    own = [other for other in offered if other.processor == wanted.processor]
    return code.processor == wanted.processor or not covers(own, wanted)


class Prune(msgspec.Struct, frozen=True):
    """Keeps the host entries and the code that GPUs of ``keep`` need; entries without any code go as well.

    Raises `DeviceCodeError` when no device code would be left, unless ``allow_empty``: an older runtime that finds a
    bundle without code for a GPU gives up on every GPU of the machine.
    """

    keep: tuple[TargetId, ...]
    allow_empty: bool = False

    def __call__(self, parts: tuple[BundlePart, ...], *, place: Place) -> tuple[BundlePart, ...]:
        """Return the entries that stay."""
        targets = [part.target for part in parts]
        needed = needed_code((t for t, part in zip(targets, parts, strict=True) if t and part.size), self.keep)
        kept = tuple(
            part
            for target, part in zip(targets, parts, strict=True)
            if target is None or (part.size > 0 and target in needed)
        )
        if len(kept) == len(parts):
            return parts
        if not self.allow_empty and not any(part.size for part in kept):
            offered = [part.target for part in parts if part.target and part.size]
            raise self.nothing_left(offered, place)
        return kept

    def needed(self, units: Iterable[Iterable[TargetId]]) -> frozenset[TargetId]:
        """Return the targets of an archive whose code stays, by those of its units.

        What one unit needs stays for all: where an archive lists a target, runtimes expect every unit.
        """
        return frozenset(target for targets in units for target in needed_code(targets, self.keep))

    def nothing_left(self, targets: Iterable[TargetId], place: Place) -> DeviceCodeError:
        """Return the error for what has code for ``targets`` and none of those to keep."""
        offered = ", ".join(map(str, targets))
        return DeviceCodeError(
            place,
            "has no code for any target to keep",
            expected=f"code for one of {', '.join(map(str, self.keep))}",
            remedy=f"It has code for {offered}." if offered else "It has no code at all.",
        )
