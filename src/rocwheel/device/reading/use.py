"""Which code object is taken from a bundle, or from the archives of a split library, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects.target_id import TargetId
from rocwheel.targets.compatibility import Fit, Runtime, choose, explain, fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.targets.library_code import Found, Lookup

__all__ = ["Use", "look_up_old_use", "look_up_use", "use_of"]


class Use(msgspec.Struct, frozen=True):
    """Bundles of one file from which the same code is taken; ``code`` is ``None`` where nothing runs."""

    code: TargetId | None
    fit: Fit
    reason: str
    bundles: int


def use_of(targets: Sequence[TargetId], agent: TargetId, runtime: Runtime) -> Use:
    """Return what is taken from a bundle with code for ``targets``."""
    choice = choose(targets, agent, runtime)
    if choice is not None:
        return Use(choice.code, choice.fit, choice.reason, 1)
    reasons = "; ".join(f"{target}: {explain(target, agent, runtime)}" for target in targets)
    return _nothing(reasons or "no device code")


def look_up_use(lookup: Lookup, gpu: TargetId, beside: Sequence[TargetId] = ()) -> Use:
    """Return what ``gpu`` gets of the archives of a split library, in a machine with the GPUs ``beside`` it.

    An archive that lists one of these and lacks the unit keeps it from all of them.
    """
    found = lookup.find(gpu)
    others = {other: lookup.find(other) for other in beside}
    if found.lacking:
        return _nothing(f"{_lack(lookup, found)}: runtimes then give up on every GPU")
    for other, theirs in others.items():
        if theirs.lacking:
            return _nothing(f"beside {other}: {_lack(lookup, theirs)}, and runtimes then give up on every GPU")
    if found.code is None:
        return _nothing(_why_nothing(lookup, gpu))
    return Use(found.code, fit(found.code, gpu), explain(found.code, gpu), 1)


def look_up_old_use(lookup: Lookup, gpu: TargetId, beside: Sequence[TargetId] = ()) -> Use:
    """Return what `look_up_use` returns, by the rules of runtimes up to ROCm 7.14.

    They look into no further archive than the first that lists a target, and load code for one GPU of a machine alone.
    """
    use = look_up_use(lookup, gpu, beside)
    found = lookup.find(gpu, old=True)
    if use.code is None:
        return use
    others = sorted({str(other) for other in beside if other != gpu})
    if others:
        return _nothing(f"beside {', '.join(others)}: they hand the code for one GPU of a machine to all")
    return _nothing(f"{_lack(lookup, found)}, and no further archive is looked into") if found.lacking else use


def _lack(lookup: Lookup, found: Found) -> str:
    assert found.lacking is not None
    return f"{found.lacking.name} lists {found.target} and lacks {lookup.key}"


def _why_nothing(lookup: Lookup, gpu: TargetId) -> str:
    if not lookup.archives:
        return f"no archive at {', '.join(lookup.wrapper.marker.search_paths)}"
    lead = "its archives have none for this GPU"
    reasons = "; ".join(f"{target}: {_explain(target, gpu)}" for target in lookup.targets)
    return f"{lead}: {reasons}" if reasons else lead


def _explain(target: TargetId, gpu: TargetId) -> str:
    """Return why code for ``target`` in some archive is not for ``gpu``."""
    if fit(target, gpu) is not Fit.NONE:
        return "in an archive that is named for another GPU"
    return explain(target, gpu)


def _nothing(reason: str) -> Use:
    return Use(None, Fit.NONE, reason, 1)
