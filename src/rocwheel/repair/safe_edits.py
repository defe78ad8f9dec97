"""Edits of run paths that take nothing away: those that would are left out, and their files stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from rocwheel.audit.subject import Subject
from rocwheel.distributions.formats.requirements import readable_requirements
from rocwheel.installed.requirements import required_distributions
from rocwheel.linking.run_path_choice import SetRunpath
from rocwheel.repair.comparing.losses import find_losses
from rocwheel.repair.outcome import RepairedTree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocwheel.audit.settings import AuditSettings
    from rocwheel.installed.tree import Distribution, Tree
    from rocwheel.repair.toolkit import Toolkit

__all__ = ["SafeEdits", "safe_edits"]


class SafeEdits(msgspec.Struct, frozen=True):
    """The edits of an environment that take nothing away, by the files' source."""

    edits: dict[str, SetRunpath]
    left: dict[str, str]
    """Why the files without the edit that was chosen for them stay as they are."""
    repaired: RepairedTree


def safe_edits(
    tree: Tree, edits: Mapping[str, SetRunpath], toolkits: Mapping[str, Toolkit], settings: AuditSettings
) -> SafeEdits:
    """Return those of ``edits`` after which every file of an environment finds all that it may find before.

    ``toolkits`` are those of the wheels, by their source.
    """
    before = Subject(tree, settings)
    kept, left = dict(edits), dict[str, str]()
    while True:
        repaired = RepairedTree(tree, kept, toolkits, settings)
        sure = {owner.source: _sure(repaired, owner) for owner in tree.audited_distributions}
        told = {source for source, toolkit in toolkits.items() if toolkit.is_sdk and toolkit.is_told}
        losses = list(find_losses(before, repaired.subject, kept.keys(), sure, told)) if kept else []
        if not losses:
            return SafeEdits(kept, left, repaired)
        for loss in losses:
            for source in loss.edited:
                left.setdefault(source, loss.words)
                kept.pop(source, None)


def _sure(repaired: RepairedTree, owner: Distribution) -> frozenset[str]:
    """Return the distributions that a repaired wheel is installed with, and whose libraries are known for sure."""
    tree, toolkit = repaired.subject.tree, repaired.toolkits.get(owner.source)
    added = repaired.undeclared(owner)
    required = required_distributions(tree, owner).union(added)
    for other in tree.distributions:
        if other.name in added:
            required |= required_distributions(tree, other)
    given = {other.name: other.version for other in tree.distributions}
    others = {name for name, version in given.items() if name in required and _is_allowed(owner, name, version)}
    assumed = required - given.keys() if toolkit and toolkit.is_sdk and toolkit.is_told else set()
    return frozenset({owner.name, *others, *assumed})


def _is_allowed(owner: Distribution, name: str, version: str) -> bool:
    """Return whether what a distribution requires itself allows a version of another one."""
    found = [req for req in readable_requirements(owner.requires) if canonicalize_name(req.name) == name]
    try:
        return all(requirement.specifier.contains(version, prereleases=True) for requirement in found)
    except InvalidVersion:
        return False
