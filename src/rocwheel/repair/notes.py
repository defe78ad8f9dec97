"""What users should know of a repaired wheel before they publish it: what is assumed, and whose ROCm it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.foundation.messages.counting import count, first_of

if TYPE_CHECKING:
    from rocwheel.installed.tree import Distribution
    from rocwheel.repair.outcome import RepairedTree

__all__ = ["open_version_note", "toolkit_note"]

_OPEN = (
    "Requires-Dist: {0} allows any version, though its libraries are assumed to be those of ROCm 7: give {0} with "
    "--with, and --pin"
)
_OTHERS = "is for {}: paths to that stay, and none lead to the SDK's packages unless --toolkit sdk says so"
_KEPT = "{} the paths to libraries that are not at hand, in {}"
_INSTEAD = "is for {}: {}. --toolkit sdk would lead to the SDK's packages instead, for every library that they have"


def open_version_note(requirement: str) -> str:
    """Return a note on a requirement that names no version."""
    return _OPEN.format(requirement)


def toolkit_note(repaired: RepairedTree, owner: Distribution) -> str:
    """Return a note on what a wheel leaves to the machine's toolkits; empty if it leaves nothing."""
    reason = repaired.toolkits[owner.source].reason
    found = repaired.kept_for_system(owner)
    if not found:
        return _OTHERS.format(reason) if reason else ""
    folders = dict.fromkeys(place for finds in found.values() for one in finds for place in one.place.split(":"))
    kept = _KEPT.format(count(len(found), "file keeps", "files keep"), first_of([*folders]))
    return _INSTEAD.format(reason, kept) if reason else f"as asked, {kept}"
