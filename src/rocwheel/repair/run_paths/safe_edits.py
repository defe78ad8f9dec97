"""Edits of run paths that take nothing away: those that would are left out, and their files stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.subject import Subject
from rocwheel.audit.wheel_toolkits import Opens
from rocwheel.installed.requirements import surely_installed
from rocwheel.linking.run_path_choice import SetRunpath
from rocwheel.repair.comparing.losses import GivenUp, find_losses
from rocwheel.repair.outcome import RepairedTree

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rocwheel.audit.settings import AuditSettings
    from rocwheel.audit.wheel_toolkits import Toolkit
    from rocwheel.installed.tree import Distribution, Tree
    from rocwheel.repair.comparing.comparison import Loss

__all__ = ["SafeEdits", "safe_edits"]

_NOTHING = GivenUp()


class SafeEdits(msgspec.Struct, frozen=True):
    """The edits of an environment that take nothing away, by the files' source."""

    edits: dict[str, SetRunpath]
    left: dict[str, str]
    """Why the files without the edit that was chosen for them stay as they are."""
    milder: dict[str, str]
    """Why files get a milder edit than the one that was chosen for them."""
    repaired: RepairedTree
    opens: Mapping[str, Opens]
    """What is known about the libraries that files open by name, by the files' source."""


def safe_edits(
    tree: Tree,
    chosen: Mapping[str, Sequence[SetRunpath]],
    toolkits: Mapping[str, Toolkit],
    settings: AuditSettings,
    given_up: GivenUp = _NOTHING,
) -> SafeEdits:
    """Return for each file of an environment the first edit after which all find what they may find before.

    ``chosen`` are the edits of the files, by their source, the best one first. ``toolkits`` are those of the wheels, by
    their source. What is ``given_up`` on purpose is not taken away.
    """
    before = Subject(tree, settings)
    waiting = {source: list(edits) for source, edits in chosen.items() if edits}
    reasons = dict[str, str]()
    while True:
        kept = {source: edits[0] for source, edits in waiting.items()}
        repaired = RepairedTree(tree, kept, toolkits, settings)
        sure = {owner.source: _sure(repaired, owner) for owner in tree.audited_distributions}
        losses = list(find_losses(before, repaired.subject, kept.keys(), sure, given_up)) if kept else []
        if not losses:
            left = {source: words for source, words in reasons.items() if source not in kept}
            milder = {source: words for source, words in reasons.items() if source in kept}
            return SafeEdits(kept, left, milder, repaired, given_up.opens)
        for source, words in _blamed(losses, kept).items():
            reasons.setdefault(source, words)
            del waiting[source][0]
        waiting = {source: edits for source, edits in waiting.items() if edits}


def _blamed(losses: Sequence[Loss], edited: Collection[str]) -> dict[str, str]:
    """Return the sources of the files whose edits have to go, each with its first loss: one at least."""
    return {source: loss.words for loss in reversed(losses) for source in loss.edited or edited}


def _sure(repaired: RepairedTree, owner: Distribution) -> frozenset[str]:
    """Return the distributions that a repaired wheel is installed with, and whose libraries are known for sure."""
    tree, toolkit = repaired.subject.tree, repaired.toolkits.get(owner.source)
    installed = surely_installed(tree, owner, repaired.undeclared(owner))
    given = {other.name for other in tree.distributions}
    return installed if toolkit is not None and toolkit.trusts_layout else installed & given
